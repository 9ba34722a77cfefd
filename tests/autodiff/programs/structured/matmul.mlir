#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @f(%x: tensor<3x4xf64>, %y: tensor<4x5xf64>, %z: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x, %y : tensor<3x4xf64>, tensor<4x5xf64>) outs(%z : tensor<3x5xf64>) {
  ^bb0(%a: f64, %b: f64, %acc: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %acc, %p : f64
    linalg.yield %s : f64
  } -> tensor<3x5xf64>
  return %r : tensor<3x5xf64>
}
