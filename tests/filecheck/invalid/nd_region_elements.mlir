// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A region for single elements works on rank 0.

func.func @f(%x: tensor<4xf32>, %i: tensor<f32>) {
  // expected-error@+1 {{nd.reduce: the combiner works on single elements, found tensor<2xf32> in nd.constant}}
  %0 = "nd.reduce"(%x, %i) <{dims = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = nd.constant splat(1.0 : f32) : tensor<2xf32>
    nd.yield %a : tensor<f32>
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return
}
