// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// Results have the operands' element types.

func.func @f(%x: tensor<4x3xf32>, %i: tensor<f32>) {
  // expected-error@+1 {{nd.reduce: element types differ: result 0 has f64, operand 0 has f32}}
  %0 = nd.reduce %x init %i dims [1] by (%a: tensor<f32>, %b: tensor<f32>) { %s = nd.add %a, %b : tensor<f32> nd.yield %s : tensor<f32> } : tensor<4x3xf32>, tensor<f32> -> tensor<4xf64>
  return
}
