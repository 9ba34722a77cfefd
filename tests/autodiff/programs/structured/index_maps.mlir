#x = affine_map<(i, j) -> (4 - j, i * 2 + 1)>
#d = affine_map<(i, j) -> (i, i)>
#q = affine_map<(i, j) -> (j floordiv 2)>
#y = affine_map<(i, j) -> (j, i)>
func.func @f(%x: tensor<5x7xf64>, %d: tensor<3x3xf64>, %q: tensor<3xf64>, %y: tensor<5x3xf64>, %s: tensor<1xf64>) -> tensor<5x3xf64> {
  %c0 = arith.constant 0 : index
  %sc = tensor.extract %s[%c0] : tensor<1xf64>
  %r = linalg.generic {indexing_maps = [#x, #d, #q, #y], iterator_types = ["parallel", "parallel"]}
    ins(%x, %d, %q : tensor<5x7xf64>, tensor<3x3xf64>, tensor<3xf64>) outs(%y : tensor<5x3xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64, %o: f64):
    %i = linalg.index 1 : index
    %n = arith.index_cast %i : index to i64
    %fl = arith.sitofp %n : i64 to f64
    %p = arith.mulf %a, %b : f64
    %p2 = arith.mulf %p, %fl : f64
    %s1 = arith.addf %p2, %c : f64
    %s2 = arith.mulf %s1, %sc : f64
    %s3 = arith.mulf %s2, %o : f64
    linalg.yield %s3 : f64
  } -> tensor<5x3xf64>
  return %r : tensor<5x3xf64>
}
