#x = affine_map<(n, h, w, o, kh, kw, c) -> (n, h * 2 + kh, w + kw * 2, c)>
#k = affine_map<(n, h, w, o, kh, kw, c) -> (kh, kw, c, o)>
#y = affine_map<(n, h, w, o, kh, kw, c) -> (n, h, w, o)>
func.func @f(%x: tensor<1x5x6x2xf64>, %k: tensor<3x2x2x3xf64>) -> tensor<1x2x4x3xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<1x2x4x3xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<1x2x4x3xf64>) -> tensor<1x2x4x3xf64>
  %r = linalg.generic {indexing_maps = [#x, #k, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
    ins(%x, %k : tensor<1x5x6x2xf64>, tensor<3x2x2x3xf64>) outs(%z : tensor<1x2x4x3xf64>) {
  ^bb0(%a: f64, %b: f64, %acc: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %acc, %p : f64
    linalg.yield %s : f64
  } -> tensor<1x2x4x3xf64>
  return %r : tensor<1x2x4x3xf64>
}
