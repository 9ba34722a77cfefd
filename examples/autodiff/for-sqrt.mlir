// A loop that keeps every third of nine carried values: each segment runs again, with a stack of its own.
//
//   gradir-opt examples/autodiff/for-sqrt.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @f(%x0: tensor<3xf64>) -> tensor<3xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %y = scf.for %t = %c0 to %c9 step %c1 iter_args(%x = %x0) -> (tensor<3xf64>) {
    %s = nd.sin %x : tensor<3xf64>
    %e = nd.exp %s : tensor<3xf64>
    scf.yield %e : tensor<3xf64>
  } {gradir.residuals = "sqrt"}
  return %y : tensor<3xf64>
}

func.func @main(%x0: tensor<3xf64>, %dy: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %y, %dx0 = ad.vjp @f(%x0, %dy) wrt [0] : (tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %y, %dx0 : tensor<3xf64>, tensor<3xf64>
}
