// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// The sizes of a constant mask fit the vector.

func.func @f() {
  // expected-error@+1 {{vector.constant_mask: sizes [5] do not fit vector<4xi1>}}
  %0 = vector.constant_mask [5] : vector<4xi1>
  return
}
