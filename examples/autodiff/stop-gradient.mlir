// A value that is read, but through which no derivative runs.
//
//   gradir-opt examples/autodiff/stop-gradient.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @f(%x: tensor<3xf64>) -> tensor<3xf64> {
  %e = nd.exp %x : tensor<3xf64>
  %c = ad.stop_gradient %e : tensor<3xf64>
  %y = nd.mul %x, %c : tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @main(%x: tensor<3xf64>, %dy: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %y, %dx = ad.vjp @f(%x, %dy) wrt [0] : (tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %y, %dx : tensor<3xf64>, tensor<3xf64>
}
