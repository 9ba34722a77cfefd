// A function that is called twice: one pair of functions, forward and backward, that both calls use.
//
//   gradir-opt examples/autodiff/call.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @g(%x: tensor<3xf64>) -> tensor<3xf64> {
  %s = nd.sin %x : tensor<3xf64>
  %r = nd.mul %s, %s : tensor<3xf64>
  return %r : tensor<3xf64>
}
func.func private @f(%x: tensor<3xf64>) -> tensor<3xf64> {
  %a = func.call @g(%x) : (tensor<3xf64>) -> tensor<3xf64>
  %y = func.call @g(%a) : (tensor<3xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @main(%x: tensor<3xf64>, %dy: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %y, %dx = ad.vjp @f(%x, %dy) wrt [0] : (tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %y, %dx : tensor<3xf64>, tensor<3xf64>
}
