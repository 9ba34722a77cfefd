// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A reduction drops the reduced dimensions.

func.func @f(%x: vector<2x3xf32>, %y: vector<3xf32>) {
  // expected-error@+1 {{vector.multi_reduction: result must be vector<2xf32>, got vector<3xf32>}}
  %0 = "vector.multi_reduction"(%x, %y) <{kind = #vector.kind<add>, reduction_dims = array<i64: 1>}> : (vector<2x3xf32>, vector<3xf32>) -> vector<3xf32>
  return
}

// -----

func.func @f(%x: vector<2x3xf32>, %y: vector<2x3xf32>) {
  // expected-error@+1 {{vector.multi_reduction: reduction_dims names dimension 2, the source has rank 2}}
  %0 = "vector.multi_reduction"(%x, %y) <{kind = #vector.kind<add>, reduction_dims = array<i64: 2>}> : (vector<2x3xf32>, vector<2x3xf32>) -> vector<2x3xf32>
  return
}
