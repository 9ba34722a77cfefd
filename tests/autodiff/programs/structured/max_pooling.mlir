#x = affine_map<(i, j, ki, kj) -> (i + ki, j * 2 + kj)>
#w = affine_map<(i, j, ki, kj) -> (ki, kj)>
#y = affine_map<(i, j, ki, kj) -> (i, j)>
func.func @f(%x: tensor<4x7xf64>) -> tensor<3x3xf64> {
  %m = arith.constant 0xFFF0000000000000 : f64
  %e = tensor.empty() : tensor<3x3xf64>
  %win = tensor.empty() : tensor<2x3xf64>
  %z = linalg.fill ins(%m : f64) outs(%e : tensor<3x3xf64>) -> tensor<3x3xf64>
  %r = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
    ins(%x, %win : tensor<4x7xf64>, tensor<2x3xf64>) outs(%z : tensor<3x3xf64>) {
  ^bb0(%a: f64, %b: f64, %acc: f64):
    %s = arith.maximumf %acc, %a : f64
    linalg.yield %s : f64
  } -> tensor<3x3xf64>
  return %r : tensor<3x3xf64>
}
