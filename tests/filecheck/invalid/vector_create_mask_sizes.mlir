// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A mask has one size per dimension.

func.func @f(%n: index) {
  // expected-error@+1 {{vector.create_mask: expected 2 sizes for vector<4x8xi1>, got 1}}
  %0 = vector.create_mask %n : vector<4x8xi1>
  return
}
