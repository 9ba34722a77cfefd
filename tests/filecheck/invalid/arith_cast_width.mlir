// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// An extension widens, a truncation narrows.

func.func @f(%x: i32) {
  // expected-error@+1 {{arith.extsi: result type i32 must be wider than operand type i32}}
  %0 = "arith.extsi"(%x) : (i32) -> i32
  return
}

// -----

func.func @f(%x: i32) {
  // expected-error@+1 {{arith.extui: result type i16 must be wider than operand type i32}}
  %0 = "arith.extui"(%x) : (i32) -> i16
  return
}

// -----

func.func @f(%x: i32) {
  // expected-error@+1 {{arith.trunci: result type i64 must be narrower than operand type i32}}
  %0 = "arith.trunci"(%x) : (i32) -> i64
  return
}
