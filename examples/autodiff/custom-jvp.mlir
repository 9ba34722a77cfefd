// A call with a forward rule of its own: forward mode calls it, reverse mode its transpose.
//
//   gradir-opt examples/autodiff/custom-jvp.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @square(%x: tensor<3xf64>) -> tensor<3xf64> {
  %y = nd.mul %x, %x : tensor<3xf64>
  return %y : tensor<3xf64>
}
func.func private @rule(%x: tensor<3xf64>, %dx: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %y = nd.mul %x, %x : tensor<3xf64>
  %two = nd.add %x, %x : tensor<3xf64>
  %dy = nd.mul %two, %dx : tensor<3xf64>
  return %y, %dy : tensor<3xf64>, tensor<3xf64>
}
func.func private @f(%x: tensor<3xf64>) -> tensor<3xf64> {
  %y = ad.custom_jvp @square tangents @rule(%x) : (tensor<3xf64>) -> tensor<3xf64>
  return %y : tensor<3xf64>
}

func.func @main(%x: tensor<3xf64>, %dy: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %y, %dx = ad.vjp @f(%x, %dy) wrt [0] : (tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %y, %dx : tensor<3xf64>, tensor<3xf64>
}
