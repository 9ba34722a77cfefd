// A function of one element as one of many: what differs from element to element has one dimension more.
//
//   gradir-opt examples/autodiff/batch.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @f(%a: tensor<3xf64>, %w: tensor<3x2xf64>, %q: tensor<i1>) -> tensor<2xf64> {
  %b = nd.dot_general %a, %w contract [0] x [0] : tensor<3xf64>, tensor<3x2xf64> -> tensor<2xf64>
  %p = tensor.extract %q[] : tensor<i1>
  %y = scf.if %p -> (tensor<2xf64>) {
    %e = nd.exp %b : tensor<2xf64>
    scf.yield %e : tensor<2xf64>
  } else {
    scf.yield %b : tensor<2xf64>
  }
  return %y : tensor<2xf64>
}

func.func @main(%a: tensor<5x3xf64>, %w: tensor<3x2xf64>, %q: tensor<5xi1>) -> tensor<5x2xf64> {
  %y = ad.batch @f(%a, %w, %q) over [0, 2] : (tensor<5x3xf64>, tensor<3x2xf64>, tensor<5xi1>) -> tensor<5x2xf64>
  return %y : tensor<5x2xf64>
}
