// Checks beside a derivative: forward mode against reverse mode, and against differences.
//
//   gradir-opt examples/autodiff/check.mlir -p 'differentiate{check},nd-simplify,cse,canonicalize'

func.func private @f(%x: tensor<3xf64>) -> tensor<f64> {
  %s = nd.sin %x : tensor<3xf64>
  %l = nd.reduce_sum %s dims [0] : tensor<3xf64> -> tensor<f64>
  return %l : tensor<f64>
}

func.func @main(%x: tensor<3xf64>) -> tensor<3xf64> {
  %dx = ad.grad @f(%x) wrt [0] : (tensor<3xf64>) -> tensor<3xf64>
  return %dx : tensor<3xf64>
}
