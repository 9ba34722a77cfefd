// A call with a reverse rule of its own: the forward and the backward function stand in for the callee.
//
//   gradir-opt examples/autodiff/custom-vjp.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @log1pexp(%x: tensor<3xf64>) -> tensor<3xf64> {
  %e = nd.exp %x : tensor<3xf64>
  %y = nd.log1p %e : tensor<3xf64>
  return %y : tensor<3xf64>
}
func.func private @fwd(%x: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %y = func.call @log1pexp(%x) : (tensor<3xf64>) -> tensor<3xf64>
  return %y, %x : tensor<3xf64>, tensor<3xf64>
}
func.func private @bwd(%x: tensor<3xf64>, %dy: tensor<3xf64>) -> tensor<3xf64> {
  %s = nd.logistic %x : tensor<3xf64>
  %dx = nd.mul %dy, %s : tensor<3xf64>
  return %dx : tensor<3xf64>
}
func.func private @f(%x: tensor<3xf64>) -> tensor<3xf64> {
  %y = ad.custom_vjp @log1pexp forward @fwd backward @bwd(%x) : (tensor<3xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @main(%x: tensor<3xf64>, %dy: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %y, %dx = ad.vjp @f(%x, %dy) wrt [0] : (tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %y, %dx : tensor<3xf64>, tensor<3xf64>
}
