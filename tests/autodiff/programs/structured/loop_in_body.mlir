#y = affine_map<(i) -> (i)>
func.func @f(%x: tensor<4xf64>, %w: tensor<4xf64>) -> tensor<4xf64> {
  %e = tensor.empty() : tensor<4xf64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = linalg.generic {indexing_maps = [#y, #y, #y], iterator_types = ["parallel"]} ins(%w, %x : tensor<4xf64>, tensor<4xf64>) outs(%e : tensor<4xf64>) {
  ^bb0(%a: f64, %v: f64, %o: f64):
    %p = scf.for %t = %c0 to %c3 step %c1 iter_args(%z = %a) -> (f64) {
      %m = arith.mulf %z, %v : f64
      %s = math.sin %m : f64
      scf.yield %s : f64
    }
    linalg.yield %p : f64
  } -> tensor<4xf64>
  return %r : tensor<4xf64>
}
