// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A region for single elements is one block that ends in nd.yield.

func.func @f(%x: tensor<4xf32>, %i: tensor<f32>) {
  // expected-error@+1 {{nd.reduce: the combiner must be one block, found 2}}
  %0 = "nd.reduce"(%x, %i) <{dims = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    nd.yield %a : tensor<f32>
  ^bb1:
    nd.yield %a : tensor<f32>
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<f32>) {
  // expected-error@+1 {{nd.reduce: the combiner must end in nd.yield, found nd.add}}
  %0 = "nd.reduce"(%x, %i) <{dims = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    // expected-error@+1 {{ends its block but is not a terminator}}
    %s = nd.add %a, %b : tensor<f32>
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return
}
