// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// An outer product has a vector on the left, and a result of both sizes.

func.func @f(%x: vector<2xf32>, %y: vector<3xf32>) {
  // expected-error@+1 {{vector.outerproduct: accumulator and result must be vector<2x3xf32>, got vector<3x2xf32>}}
  %0 = "vector.outerproduct"(%x, %y) <{kind = #vector.kind<add>}> : (vector<2xf32>, vector<3xf32>) -> vector<3x2xf32>
  return
}

// -----

func.func @f(%x: f32, %y: vector<3xf32>) {
  // expected-error@+1 {{vector.outerproduct: expected a vector, got f32}}
  %0 = vector.outerproduct %x, %y : f32, vector<3xf32>
  return
}
