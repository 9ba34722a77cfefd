// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// Source and initial value have the operand's element type.

func.func @f(%x: tensor<4xf32>, %src: tensor<2xf32>, %i: tensor<f64>) {
  // expected-error@+1 {{nd.select_and_scatter_general: source and start must have element type f32, found f32 and tensor<f64>}}
  %0 = nd.select_and_scatter_general %x, %src, %i window [2] strides [2] padding [0, 0] select (%a: tensor<f32>, %b: tensor<f32>) { %c = nd.compare ge, %a, %b : tensor<f32> nd.yield %c : tensor<i1> } scatter (%a: tensor<f32>, %b: tensor<f32>) { %s = nd.add %a, %b : tensor<f32> nd.yield %s : tensor<f32> } : tensor<4xf32>, tensor<2xf32>, tensor<f64>
  return
}
