#x = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i, j) -> (i)>
func.func @f(%x: tensor<3x4xf64>, %z: tensor<3xf64>) -> tensor<3xf64> {
  %p = linalg.generic {indexing_maps = [#x, #r], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x4xf64>) outs(%z : tensor<3xf64>) {
  ^bb0(%a: f64, %acc: f64):
    %s = arith.mulf %acc, %a : f64
    linalg.yield %s : f64
  } -> tensor<3xf64>
  return %p : tensor<3xf64>
}
