// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// The correction of a variance is not negative.

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{nd.variance: correction must be at least 0, found -1}}
  %0 = nd.variance %x dims [0] correction -1 : tensor<4xf32> -> tensor<f32>
  return
}
