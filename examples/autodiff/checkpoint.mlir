// A call that saves its arguments alone: the backward part runs it again, behind a barrier that waits for the cotangents.
//
//   gradir-opt examples/autodiff/checkpoint.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @g(%x: tensor<3xf64>) -> tensor<3xf64> {
  %a = nd.sin %x : tensor<3xf64>
  %r = nd.exp %a : tensor<3xf64>
  return %r : tensor<3xf64>
}
func.func private @f(%x: tensor<3xf64>) -> tensor<3xf64> {
  %y = ad.checkpoint @g(%x) : (tensor<3xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @main(%x: tensor<3xf64>, %dy: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %y, %dx = ad.vjp @f(%x, %dy) wrt [0] : (tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %y, %dx : tensor<3xf64>, tensor<3xf64>
}
