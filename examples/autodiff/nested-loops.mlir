// A loop that runs to the index of the one around it: no stack outside could hold what it saves, so the outer body runs again.
//
//   gradir-opt examples/autodiff/nested-loops.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @f(%x: tensor<3xf64>) -> tensor<3xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %y = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %x) -> (tensor<3xf64>) {
    %b = scf.for %j = %c0 to %i step %c1 iter_args(%c = %a) -> (tensor<3xf64>) {
      %s = nd.sin %c : tensor<3xf64>
      scf.yield %s : tensor<3xf64>
    }
    scf.yield %b : tensor<3xf64>
  }
  return %y : tensor<3xf64>
}

func.func @main(%x: tensor<3xf64>, %dy: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %y, %dx = ad.vjp @f(%x, %dy) wrt [0] : (tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %y, %dx : tensor<3xf64>, tensor<3xf64>
}
