// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A conversion goes between the types of its name.

func.func @f(%x: i32) {
  // expected-error@+1 {{arith.fptosi: cannot convert i32 to i64}}
  %0 = "arith.fptosi"(%x) : (i32) -> i64
  return
}

// -----

func.func @f(%x: f32) {
  // expected-error@+1 {{arith.sitofp: cannot convert f32 to f64}}
  %0 = "arith.sitofp"(%x) : (f32) -> f64
  return
}
