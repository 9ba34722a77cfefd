// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{'func.func' op is a kernel and must be private}}
func.func @public(%x: memref<4xf32>) attributes {gradir.kernel = #kernel.loops<>} {
  return
}

// -----

// expected-error@+1 {{'func.func' op is a kernel and must have one block}}
func.func private @blocks(%x: memref<4xf32>) attributes {gradir.kernel = #kernel.loops<>} {
  cf.br ^a
^a:
  return
}

// -----

func.func private @leaf() {
  return
}
func.func private @calls(%x: memref<4xf32>) attributes {gradir.kernel = #kernel.loops<>} {
  // expected-error@+1 {{'func.call' op has no place in a kernel: gradir.kernel is on @calls}}
  call @leaf() : () -> ()
  return
}

// -----

// expected-error@+1 {{its last arguments must be the destinations of its results, expected (tensor<8xf32>), found (tensor<4xf32>)}}
func.func private @destination(%x: tensor<8xf32>, %out: tensor<4xf32>) -> tensor<8xf32> attributes {gradir.kernel = #kernel.loops<>} {
  return %x : tensor<8xf32>
}

// -----

// expected-error@+1 {{is a kernel on buffers and must have no results}}
func.func private @results(%x: memref<8xf32>) -> memref<8xf32> attributes {gradir.kernel = #kernel.loops<>} {
  return %x : memref<8xf32>
}

// -----

func.func private @tensors(%x: memref<8xf32>) attributes {gradir.kernel = #kernel.loops<>} {
  // expected-error@+1 {{'tensor.empty' op is on tensors in a kernel on buffers}}
  %e = tensor.empty() : tensor<4xf32>
  return
}

// -----

func.func private @read_only(%x: memref<8xf32> {gradir.access = "read"}, %y: memref<8xf32> {gradir.access = "write"}, %v: f32)
    attributes {gradir.kernel = #kernel.loops<>} {
  %c0 = arith.constant 0 : index
  %part = memref.subview %x[2] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 2>>
  memref.store %v, %y[%c0] : memref<8xf32>
  // expected-error@+1 {{'memref.store' op writes argument #0 of its kernel, which is marked gradir.access = "read"}}
  memref.store %v, %part[%c0] : memref<4xf32, strided<[1], offset: 2>>
  // expected-error@+1 {{'linalg.fill' op writes argument #0 of its kernel}}
  linalg.fill ins(%v : f32) outs(%x : memref<8xf32>)
  return
}
