// Several results, an integer operand, an argument that is returned as it is: each float result brings a cotangent, integers none.
//
//   gradir-opt examples/autodiff/several-results.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @f(%x: tensor<5xf64>, %i: tensor<i64>) -> (tensor<5xf64>, tensor<2xf64>, tensor<i64>) {
  %part = nd.dynamic_slice %x, %i sizes [2] : tensor<5xf64>, tensor<i64> -> tensor<2xf64>
  %e = nd.exp %part : tensor<2xf64>
  return %x, %e, %i : tensor<5xf64>, tensor<2xf64>, tensor<i64>
}

func.func @main(%x: tensor<5xf64>, %i: tensor<i64>, %dy: tensor<5xf64>, %de: tensor<2xf64>, %none: tensor<i64>) -> tensor<5xf64> {
  %y, %e, %j, %dx = ad.vjp @f(%x, %i, %dy, %de, %none) wrt [0] : (tensor<5xf64>, tensor<i64>, tensor<5xf64>, tensor<2xf64>, tensor<i64>) -> (tensor<5xf64>, tensor<2xf64>, tensor<i64>, tensor<5xf64>)
  return %dx : tensor<5xf64>
}
