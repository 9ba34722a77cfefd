// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A derivative is asked of a function.

memref.global "private" constant @g : memref<2xf32> = dense<[1.0, 2.0]>
func.func @f(%x: tensor<f32>) {
  // expected-error@+1 {{ad.grad: @g is not a function but memref.global}}
  %0 = ad.grad @g(%x) wrt [0] : (tensor<f32>) -> tensor<f32>
  return
}
