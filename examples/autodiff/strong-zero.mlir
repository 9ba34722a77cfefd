// The branch that `where` did not take: its slope may be infinite, and 0 times it is 0.
//
//   gradir-opt examples/autodiff/strong-zero.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @f(%x: tensor<3xf64>) -> tensor<3xf64> {
  %one = nd.constant splat(1.0 : f64) : tensor<3xf64>
  %p = nd.compare lt, %x, %one : tensor<3xf64>
  %r = nd.sqrt %x : tensor<3xf64>
  %y = nd.select %p, %x, %r : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @main(%x: tensor<3xf64>, %dy: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %y, %dx = ad.vjp @f(%x, %dy) wrt [0] : (tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %y, %dx : tensor<3xf64>, tensor<3xf64>
}
