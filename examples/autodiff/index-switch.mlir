// A switch: like a branch, with one region per case; equal types of residuals share a result.
//
//   gradir-opt examples/autodiff/index-switch.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @f(%n: tensor<i64>, %x: tensor<3xf64>) -> tensor<3xf64> {
  %i = tensor.extract %n[] : tensor<i64>
  %k = arith.index_cast %i : i64 to index
  %y = scf.index_switch %k -> tensor<3xf64>
  case 0 {
    %e = nd.exp %x : tensor<3xf64>
    scf.yield %e : tensor<3xf64>
  }
  default {
    %t = nd.tanh %x : tensor<3xf64>
    scf.yield %t : tensor<3xf64>
  }
  return %y : tensor<3xf64>
}

func.func @main(%n: tensor<i64>, %x: tensor<3xf64>, %dy: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %y, %dx = ad.vjp @f(%n, %x, %dy) wrt [1] : (tensor<i64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %y, %dx : tensor<3xf64>, tensor<3xf64>
}
