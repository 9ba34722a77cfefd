// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// One scalar per element.

func.func @f(%x: f32) {
  // expected-error@+1 {{vector.from_elements: vector<3xf32> needs 3 elements, got 2}}
  %0 = vector.from_elements %x, %x : vector<3xf32>
  return
}
