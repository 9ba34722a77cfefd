#y = affine_map<(i) -> (i)>
func.func @f(%x: tensor<4xf64>, %w: tensor<4xf64>) -> tensor<4xf64> {
  %e = tensor.empty() : tensor<4xf64>
  %r = linalg.generic {indexing_maps = [#y, #y, #y], iterator_types = ["parallel"]} ins(%w, %x : tensor<4xf64>, tensor<4xf64>) outs(%e : tensor<4xf64>) {
  ^bb0(%a: f64, %v: f64, %o: f64):
    %zero = arith.constant 0.0 : f64
    %pos = arith.cmpf ogt, %a, %zero : f64
    %p = scf.if %pos -> (f64) {
      %m = arith.mulf %a, %v : f64
      scf.yield %m : f64
    } else {
      %m = math.sin %v : f64
      %m2 = arith.mulf %m, %a : f64
      scf.yield %m2 : f64
    }
    linalg.yield %p : f64
  } -> tensor<4xf64>
  return %r : tensor<4xf64>
}
