// Forward mode: a tangent beside every active value, and nothing is saved.
//
//   gradir-opt examples/autodiff/forward.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @f(%x: tensor<3xf64>, %y: tensor<3xf64>) -> tensor<3xf64> {
  %a = nd.sin %x : tensor<3xf64>
  %b = nd.mul %a, %y : tensor<3xf64>
  return %b : tensor<3xf64>
}

func.func @main(%x: tensor<3xf64>, %y: tensor<3xf64>, %dx: tensor<3xf64>, %dy: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %b, %db = ad.jvp @f(%x, %y, %dx, %dy) wrt [0, 1] : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %b, %db : tensor<3xf64>, tensor<3xf64>
}
