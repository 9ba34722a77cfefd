// A loop nest of level 2: its derivative is a nest again.
//
//   gradir-opt examples/autodiff/linalg.mlir -p 'differentiate,nd-simplify,cse,canonicalize'

#xs = affine_map<(i, j) -> (j)>
#ws = affine_map<(i, j) -> (i, j)>
#ys = affine_map<(i, j) -> (i)>

func.func private @f(%x: tensor<3xf64>, %w: tensor<2x3xf64>, %z: tensor<2xf64>) -> tensor<2xf64> {
  %y = linalg.generic {indexing_maps = [#xs, #ws, #ys], iterator_types = ["parallel", "reduction"]}
    ins(%x, %w : tensor<3xf64>, tensor<2x3xf64>) outs(%z : tensor<2xf64>) {
  ^bb0(%a: f64, %b: f64, %sum: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %sum, %p : f64
    linalg.yield %s : f64
  } -> tensor<2xf64>
  return %y : tensor<2xf64>
}

func.func @main(%x: tensor<3xf64>, %w: tensor<2x3xf64>, %z: tensor<2xf64>, %dy: tensor<2xf64>) -> (tensor<2xf64>, tensor<3xf64>) {
  %y, %dx = ad.vjp @f(%x, %w, %z, %dy) wrt [0] : (tensor<3xf64>, tensor<2x3xf64>, tensor<2xf64>, tensor<2xf64>) -> (tensor<2xf64>, tensor<3xf64>)
  return %y, %dx : tensor<2xf64>, tensor<3xf64>
}
