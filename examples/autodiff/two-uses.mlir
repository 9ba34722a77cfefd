// A value that is used twice: its cotangent is the sum of what both uses send back.
//
//   gradir-opt examples/autodiff/two-uses.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @f(%x: tensor<3xf64>) -> tensor<3xf64> {
  %s = nd.sin %x : tensor<3xf64>
  %y = nd.mul %x, %s : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @main(%x: tensor<3xf64>, %dy: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %y, %dx = ad.vjp @f(%x, %dy) wrt [0] : (tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %y, %dx : tensor<3xf64>, tensor<3xf64>
}
