// RUN: gradir-opt %s -p bufferize --split-input-file --verify-diagnostics

func.func @level_one(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{has no form on buffers}}
  %y = nd.exp %x : tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func private @g(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
func.func @calls(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{calls @g, which is not a kernel}}
  %y = call @g(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

// expected-error@+1 {{returns a scalar}}
func.func @scalar(%x: tensor<2xf32>) -> f32 {
  %v = arith.constant 1.0 : f32
  return %v : f32
}

// -----

// expected-error@+1 {{mixes tensors and memrefs}}
func.func @mixed(%x: tensor<2xf32>, %m: memref<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
