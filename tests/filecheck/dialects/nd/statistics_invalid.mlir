// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<4xi32>) {
  // expected-error@+1 {{nd.variance: operand must have a float type}}
  %0 = nd.variance %x dims [0] : tensor<4xi32> -> tensor<i32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{nd.variance: correction must be at least 0, found -1}}
  %0 = nd.variance %x dims [0] correction -1 : tensor<4xf32> -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{nd.norm: result must have shape [4], found [2]}}
  %0 = nd.norm %x dims [1] : tensor<4x2xf32> -> tensor<2xf32>
  return
}
