// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A constant step is positive.

func.func @f(%n: index) {
  %zero = arith.constant 0 : index
  // expected-error@+1 {{constant step must be at least 1, found 0}}
  scf.for %i = %zero to %n step %zero {
  }
  return
}
