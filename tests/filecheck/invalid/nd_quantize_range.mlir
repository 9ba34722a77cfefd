// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// The range of nd.quantize lies within the type.

func.func @f(%x: tensor<4xf32>, %s: tensor<f32>, %z: tensor<i8>) {
  // expected-error@+1 {{nd.quantize: range must be [low, high] within [-128, 127], found [-200, 100]}}
  %0 = nd.quantize %x, %s, %z range [-200, 100] : tensor<4xf32>, tensor<f32>, tensor<i8> -> tensor<4xi8>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %s: tensor<f32>, %z: tensor<i8>) {
  // expected-error@+1 {{nd.quantize: range must be [low, high] within [-128, 127], found [5, 4]}}
  %0 = nd.quantize %x, %s, %z range [5, 4] : tensor<4xf32>, tensor<f32>, tensor<i8> -> tensor<4xi8>
  return
}
