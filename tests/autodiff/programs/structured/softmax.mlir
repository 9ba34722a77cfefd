#x = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i, j) -> (i)>
func.func @f(%x: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %m = arith.constant 0xFFF0000000000000 : f64
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<3xf64>
  %lo = linalg.fill ins(%m : f64) outs(%e : tensor<3xf64>) -> tensor<3xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<3xf64>) -> tensor<3xf64>
  %max = linalg.generic {indexing_maps = [#x, #r], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x5xf64>) outs(%lo : tensor<3xf64>) {
  ^bb0(%a: f64, %acc: f64):
    %s = arith.maximumf %acc, %a : f64
    linalg.yield %s : f64
  } -> tensor<3xf64>
  %e2 = tensor.empty() : tensor<3x5xf64>
  %ex, %sum = linalg.generic {indexing_maps = [#x, #r, #x, #r], iterator_types = ["parallel", "reduction"]} ins(%x, %max : tensor<3x5xf64>, tensor<3xf64>) outs(%e2, %z : tensor<3x5xf64>, tensor<3xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64, %acc: f64):
    %d = arith.subf %a, %b : f64
    %p = math.exp %d : f64
    %s = arith.addf %acc, %p : f64
    linalg.yield %p, %s : f64, f64
  } -> (tensor<3x5xf64>, tensor<3xf64>)
  %y = linalg.generic {indexing_maps = [#x, #r, #x], iterator_types = ["parallel", "parallel"]} ins(%ex, %sum : tensor<3x5xf64>, tensor<3xf64>) outs(%e2 : tensor<3x5xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %d = arith.divf %a, %b : f64
    linalg.yield %d : f64
  } -> tensor<3x5xf64>
  return %y : tensor<3x5xf64>
}
