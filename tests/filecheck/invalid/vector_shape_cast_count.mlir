// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A shape cast keeps the number of elements.

func.func @f(%x: vector<2x3xf32>) {
  // expected-error@+1 {{vector.shape_cast: vector<2x3xf32> and vector<5xf32> have different numbers of elements}}
  %0 = vector.shape_cast %x : vector<2x3xf32> to vector<5xf32>
  return
}
