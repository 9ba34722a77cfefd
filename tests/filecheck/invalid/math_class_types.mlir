// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A class of floats is asked of floats and answered in their shape.

func.func @f(%x: i32) {
  // expected-error@+1 {{math.isnan: expected floats and i1 of one shape, got i32 and i1}}
  %0 = "math.isnan"(%x) : (i32) -> i1
  return
}

// -----

func.func @f(%x: vector<4xf32>) {
  // expected-error@+1 {{math.isnan: expected floats and i1 of one shape, got vector<4xf32> and i1}}
  %0 = "math.isnan"(%x) : (vector<4xf32>) -> i1
  return
}
