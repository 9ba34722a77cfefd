// Half precision: cotangents are summed in f32 over all trips, and rounded once after the loop.
//
//   gradir-opt examples/autodiff/half.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @f(%w: tensor<3xf16>, %xs: tensor<9x3xf16>, %h0: tensor<3xf16>) -> tensor<3xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %y = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0) -> (tensor<3xf16>) {
    %x = nd.index_at %xs[%t] dim 0 : tensor<9x3xf16> -> tensor<3xf16>
    %m = nd.mul %w, %x : tensor<3xf16>
    %n = nd.add %h, %m : tensor<3xf16>
    scf.yield %n : tensor<3xf16>
  }
  return %y : tensor<3xf16>
}

func.func @main(%w: tensor<3xf16>, %xs: tensor<9x3xf16>, %h0: tensor<3xf16>, %dy: tensor<3xf16>) -> (tensor<3xf16>, tensor<3xf16>) {
  %y, %dw = ad.vjp @f(%w, %xs, %h0, %dy) wrt [0] : (tensor<3xf16>, tensor<9x3xf16>, tensor<3xf16>, tensor<3xf16>) -> (tensor<3xf16>, tensor<3xf16>)
  return %y, %dw : tensor<3xf16>, tensor<3xf16>
}
