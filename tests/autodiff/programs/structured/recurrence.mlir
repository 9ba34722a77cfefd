#x = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i, j) -> (i)>
func.func @f(%x: tensor<3x4xf64>, %z: tensor<3xf64>) -> (tensor<3x4xf64>, tensor<3xf64>) {
  %e = tensor.empty() : tensor<3x4xf64>
  %y, %p = linalg.generic {indexing_maps = [#x, #x, #r], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x4xf64>) outs(%e, %z : tensor<3x4xf64>, tensor<3xf64>) {
  ^bb0(%a: f64, %o: f64, %acc: f64):
    %t = math.tanh %acc : f64
    %s = arith.addf %t, %a : f64
    linalg.yield %s, %s : f64, f64
  } -> (tensor<3x4xf64>, tensor<3xf64>)
  return %y, %p : tensor<3x4xf64>, tensor<3xf64>
}
