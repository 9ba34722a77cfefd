// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// One initial value per operand, of its element type.

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{nd.reduce: 1 results need 1 operands and as many initial values, found 1}}
  %0 = "nd.reduce"(%x) <{dims = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    nd.yield %a : tensor<f32>
  }) : (tensor<4x3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: tensor<f64>) {
  // expected-error@+1 {{nd.reduce: initial value 0 must have type tensor<f32>, found tensor<f64>}}
  %0 = nd.reduce %x init %i dims [1] by (%a: tensor<f32>, %b: tensor<f32>) { %s = nd.add %a, %b : tensor<f32> nd.yield %s : tensor<f32> } : tensor<4x3xf32>, tensor<f64> -> tensor<4xf32>
  return
}
