// A branch: it returns its residuals, and the branch that was taken runs backwards.
//
//   gradir-opt examples/autodiff/if.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @f(%q: tensor<i1>, %x: tensor<3xf64>, %w: tensor<3xf64>) -> tensor<3xf64> {
  %p = tensor.extract %q[] : tensor<i1>
  %y = scf.if %p -> (tensor<3xf64>) {
    %e = nd.exp %x : tensor<3xf64>
    scf.yield %e : tensor<3xf64>
  } else {
    %m = nd.mul %x, %w : tensor<3xf64>
    scf.yield %m : tensor<3xf64>
  }
  return %y : tensor<3xf64>
}

func.func @main(%q: tensor<i1>, %x: tensor<3xf64>, %w: tensor<3xf64>, %dy: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) {
  %y, %dx, %dw = ad.vjp @f(%q, %x, %w, %dy) wrt [1, 2] : (tensor<i1>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>)
  return %y, %dx, %dw : tensor<3xf64>, tensor<3xf64>, tensor<3xf64>
}
