// RUN: gradir-opt %s -p split-complex --split-input-file --verify-diagnostics

func.func @no_rule(%z: tensor<4xcomplex<f32>>) -> tensor<complex<f32>> {
  %0 = arith.constant 0 : index
  // expected-error@+1 {{tensor.extract: has no meaning on complex numbers}}
  %r = tensor.extract %z[%0] : tensor<4xcomplex<f32>>
  %t = tensor.from_elements %r : tensor<complex<f32>>
  return %t : tensor<complex<f32>>
}
