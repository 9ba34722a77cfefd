// RUN: gradir-opt %s -p differentiate --split-input-file --verify-diagnostics
func.func private @loss(%x: tensor<f32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{gradir.residuals is no policy}}
  %h = scf.for %i = %c0 to %c1 step %c1 iter_args(%s = %x) -> (tensor<f32>) {
    %b = nd.sin %s : tensor<f32>
    scf.yield %b : tensor<f32>
  } {gradir.residuals = "square root"}
  return %h : tensor<f32>
}
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %g = ad.grad @loss(%x) wrt [0] : (tensor<f32>) -> tensor<f32>
  return %g : tensor<f32>
}

// -----

func.func private @loss(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@+1 {{gradir.residuals is no policy}}
  %h = scf.while (%s = %x) : (tensor<f32>) -> tensor<f32> {
    %one = nd.constant splat(1.0 : f32) : tensor<f32>
    %c = nd.compare lt, %s, %one : tensor<f32>
    %t = tensor.extract %c[] : tensor<i1>
    scf.condition(%t) %s : tensor<f32>
  } do {
  ^bb0(%s: tensor<f32>):
    %b = nd.add %s, %s : tensor<f32>
    scf.yield %b : tensor<f32>
  } attributes {gradir.residuals = 3 : i64}
  return %h : tensor<f32>
}
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %g = ad.grad @loss(%x) wrt [0] : (tensor<f32>) -> tensor<f32>
  return %g : tensor<f32>
}
