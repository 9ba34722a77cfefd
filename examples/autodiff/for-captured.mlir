// A loop that reads a value from outside: its cotangent is carried through the backward loop and summed up on the way.
//
//   gradir-opt examples/autodiff/for-captured.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @rnn(%h0: tensor<2xf64>, %w: tensor<2x2xf64>) -> tensor<2xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %y = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0) -> (tensor<2xf64>) {
    %a = nd.dot_general %h, %w contract [0] x [0] : tensor<2xf64>, tensor<2x2xf64> -> tensor<2xf64>
    %n = nd.tanh %a : tensor<2xf64>
    scf.yield %n : tensor<2xf64>
  }
  return %y : tensor<2xf64>
}

func.func @main(%h0: tensor<2xf64>, %w: tensor<2x2xf64>, %dy: tensor<2xf64>) -> (tensor<2xf64>, tensor<2x2xf64>) {
  %y, %dw = ad.vjp @rnn(%h0, %w, %dy) wrt [1] : (tensor<2xf64>, tensor<2x2xf64>, tensor<2xf64>) -> (tensor<2xf64>, tensor<2x2xf64>)
  return %y, %dw : tensor<2xf64>, tensor<2x2xf64>
}
