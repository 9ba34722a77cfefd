// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A transposition names each dimension once.

func.func @f(%x: vector<2x3xf32>) {
  // expected-error@+1 {{vector.transpose: [0, 0] is no permutation of 2 dims}}
  %0 = "vector.transpose"(%x) <{permutation = array<i64: 0, 0>}> : (vector<2x3xf32>) -> vector<2x2xf32>
  return
}

// -----

func.func @f(%x: vector<2x3xf32>) {
  // expected-error@+1 {{vector.transpose: result shape must be [3, 2], got vector<2x3xf32>}}
  %0 = "vector.transpose"(%x) <{permutation = array<i64: 1, 0>}> : (vector<2x3xf32>) -> vector<2x3xf32>
  return
}
