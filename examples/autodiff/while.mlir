// A loop that runs until a condition fails: the forward part counts, the backward part runs it again as a counted loop.
//
//   gradir-opt examples/autodiff/while.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

func.func private @halve(%x: tensor<f64>) -> tensor<f64> {
  %one = nd.constant splat(1.0 : f64) : tensor<f64>
  %half = nd.constant splat(0.5 : f64) : tensor<f64>
  %y = scf.while (%s = %x) : (tensor<f64>) -> tensor<f64> {
    %big = nd.compare gt, %s, %one : tensor<f64>
    %p = tensor.extract %big[] : tensor<i1>
    scf.condition(%p) %s : tensor<f64>
  } do {
  ^bb0(%r: tensor<f64>):
    %m = nd.mul %r, %half : tensor<f64>
    %z = nd.sin %m : tensor<f64>
    scf.yield %z : tensor<f64>
  }
  return %y : tensor<f64>
}

func.func @main(%x: tensor<f64>, %dy: tensor<f64>) -> (tensor<f64>, tensor<f64>) {
  %y, %dx = ad.vjp @halve(%x, %dy) wrt [0] : (tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<f64>)
  return %y, %dx : tensor<f64>, tensor<f64>
}
