// A loop whose end is known only when it runs: the trip count becomes a named size, and the stack has that many entries.
//
//   gradir-opt examples/autodiff/for-dynamic.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @f(%n: tensor<i64>, %x0: tensor<3xf64>) -> tensor<3xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = tensor.extract %n[] : tensor<i64>
  %end = arith.index_cast %i : i64 to index
  %y = scf.for %t = %c0 to %end step %c1 iter_args(%x = %x0) -> (tensor<3xf64>) {
    %s = nd.sin %x : tensor<3xf64>
    scf.yield %s : tensor<3xf64>
  }
  return %y : tensor<3xf64>
}

func.func @main(%n: tensor<i64>, %x0: tensor<3xf64>, %dy: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %y, %dx0 = ad.vjp @f(%n, %x0, %dy) wrt [1] : (tensor<i64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %y, %dx0 : tensor<3xf64>, tensor<3xf64>
}
