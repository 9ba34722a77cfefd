// A Hessian-vector product: forward mode over the gradient.
//
//   gradir-opt examples/autodiff/hvp.mlir -p 'differentiate,inline,nd-simplify,cse,canonicalize'

func.func private @loss(%x: tensor<3xf64>) -> tensor<f64> {
  %s = nd.sin %x : tensor<3xf64>
  %p = nd.mul %x, %s : tensor<3xf64>
  %l = nd.reduce_sum %p dims [0] : tensor<3xf64> -> tensor<f64>
  return %l : tensor<f64>
}
func.func private @slope(%x: tensor<3xf64>) -> tensor<3xf64> {
  %g = ad.grad @loss(%x) wrt [0] : (tensor<3xf64>) -> tensor<3xf64>
  return %g : tensor<3xf64>
}

func.func @main(%x: tensor<3xf64>, %v: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %g, %hv = ad.jvp @slope(%x, %v) wrt [0] : (tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %g, %hv : tensor<3xf64>, tensor<3xf64>
}
