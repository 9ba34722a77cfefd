// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// Both values and the result have one type; the condition is i1 or one i1 per element.

func.func @f(%c: i1, %x: f32, %y: f64) {
  // expected-error@+1 {{arith.select: the two values and the result must have one type, got f32, f64}}
  %0 = "arith.select"(%c, %x, %y) : (i1, f32, f64) -> f32
  return
}

// -----

func.func @f(%c: i32, %x: f32) {
  // expected-error@+1 {{arith.select: condition must be i1 or i1, got i32}}
  %0 = "arith.select"(%c, %x, %x) : (i32, f32, f32) -> f32
  return
}

// -----

func.func @f(%c: vector<2xi1>, %x: vector<4xf32>) {
  // expected-error@+1 {{arith.select: condition must be i1 or vector<4xi1>, got vector<2xi1>}}
  %0 = "arith.select"(%c, %x, %x) : (vector<2xi1>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>
  return
}
