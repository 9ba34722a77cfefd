// A straight line of ops: the rules of its ops, from the last to the first.
//
//   gradir-opt examples/autodiff/straight-line.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @layer(%w: tensor<3x2xf64>, %x: tensor<4x3xf64>) -> tensor<4x2xf64> {
  %a = nd.dot_general %x, %w contract [1] x [0] : tensor<4x3xf64>, tensor<3x2xf64> -> tensor<4x2xf64>
  %y = nd.tanh %a : tensor<4x2xf64>
  return %y : tensor<4x2xf64>
}

func.func @main(%w: tensor<3x2xf64>, %x: tensor<4x3xf64>, %dy: tensor<4x2xf64>) -> (tensor<4x2xf64>, tensor<3x2xf64>) {
  %y, %dw = ad.vjp @layer(%w, %x, %dy) wrt [0] : (tensor<3x2xf64>, tensor<4x3xf64>, tensor<4x2xf64>) -> (tensor<4x2xf64>, tensor<3x2xf64>)
  return %y, %dw : tensor<4x2xf64>, tensor<3x2xf64>
}
