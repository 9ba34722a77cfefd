// A cheap value of a large straight line: it is computed again where the cotangent is, behind a barrier that waits for it.
//
//   gradir-opt examples/autodiff/redone.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @f(%x: tensor<64x32xf32>, %w: tensor<32x128xf32>, %v: tensor<128x32xf32>) -> tensor<64x32xf32> {
  %h = nd.dot_general %x, %w contract [1] x [0] : tensor<64x32xf32>, tensor<32x128xf32> -> tensor<64x128xf32>
  %t = nd.tanh %h : tensor<64x128xf32>
  %a = nd.mul %t, %h : tensor<64x128xf32>
  %y = nd.dot_general %a, %v contract [1] x [0] : tensor<64x128xf32>, tensor<128x32xf32> -> tensor<64x32xf32>
  return %y : tensor<64x32xf32>
}

func.func @main(%x: tensor<64x32xf32>, %w: tensor<32x128xf32>, %v: tensor<128x32xf32>, %dy: tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<32x128xf32>) {
  %y, %dw = ad.vjp @f(%x, %w, %v, %dy) wrt [1] : (tensor<64x32xf32>, tensor<32x128xf32>, tensor<128x32xf32>, tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<32x128xf32>)
  return %y, %dw : tensor<64x32xf32>, tensor<32x128xf32>
}
