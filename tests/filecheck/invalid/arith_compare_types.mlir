// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A comparison has operands of one type and gives i1 in their shape.

func.func @f(%x: f32, %y: f64) {
  // expected-error@+1 {{arith.cmpf: operands must have one type, got f32 and f64}}
  %0 = "arith.cmpf"(%x, %y) <{predicate = 1 : i64}> : (f32, f64) -> i1
  return
}

// -----

func.func @f(%x: vector<4xf32>) {
  // expected-error@+1 {{arith.cmpf: result must be vector<4xi1>, got i1}}
  %0 = "arith.cmpf"(%x, %x) <{predicate = 1 : i64}> : (vector<4xf32>, vector<4xf32>) -> i1
  return
}
