// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// nd.yield carries a value.

func.func @f(%x: tensor<4xf32>, %i: tensor<f32>) {
  // expected-error@+1 {{nd.reduce: yielded values of the combiner must have types (tensor<f32>), found ()}}
  %0 = "nd.reduce"(%x, %i) <{dims = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    // expected-error@+1 {{nd.yield: expected at least one value, found none}}
    "nd.yield"() : () -> ()
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return
}
