// Newton's iteration for square roots, element by element, until the residual is below 0.3; then a branch on the result.
#id = affine_map<(i) -> (i)>
#r = affine_map<(i) -> ()>
func.func private @residual(%s: tensor<3xf64>, %x: tensor<3xf64>) -> tensor<f64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<f64>
  %start = linalg.fill ins(%zero : f64) outs(%e : tensor<f64>) -> tensor<f64>
  %r = linalg.generic {indexing_maps = [#id, #id, #r], iterator_types = ["reduction"]} ins(%s, %x : tensor<3xf64>, tensor<3xf64>) outs(%start : tensor<f64>) {
  ^bb0(%a: f64, %b: f64, %acc: f64):
    %q = arith.mulf %a, %a : f64
    %bb = arith.mulf %b, %b : f64
    %one = arith.constant 1.0 : f64
    %target = arith.addf %bb, %one : f64
    %d = arith.subf %q, %target : f64
    %size = math.absf %d : f64
    %n = arith.maximumf %acc, %size : f64
    linalg.yield %n : f64
  } -> tensor<f64>
  return %r : tensor<f64>
}
func.func @f(%x: tensor<3xf64>, %s0: tensor<3xf64>) -> tensor<3xf64> {
  %small = arith.constant 0.3 : f64
  %s1 = math.exp %s0 : tensor<3xf64>
  %root = scf.while (%s = %s1) : (tensor<3xf64>) -> tensor<3xf64> {
    %r = func.call @residual(%s, %x) : (tensor<3xf64>, tensor<3xf64>) -> tensor<f64>
    %size = tensor.extract %r[] : tensor<f64>
    %more = arith.cmpf ogt, %size, %small : f64
    scf.condition(%more) %s : tensor<3xf64>
  } do {
  ^bb0(%s: tensor<3xf64>):
    %e = tensor.empty() : tensor<3xf64>
    %next = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%s, %x : tensor<3xf64>, tensor<3xf64>) outs(%e : tensor<3xf64>) {
    ^bb0(%a: f64, %b: f64, %o: f64):
      %half = arith.constant 0.5 : f64
      %one = arith.constant 1.0 : f64
      %bb = arith.mulf %b, %b : f64
      %target = arith.addf %bb, %one : f64
      %q = arith.divf %target, %a : f64
      %m = arith.addf %q, %a : f64
      %hh = arith.mulf %m, %half : f64
      linalg.yield %hh : f64
    } -> tensor<3xf64>
    scf.yield %next : tensor<3xf64>
  }
  %c0 = arith.constant 0 : index
  %first = tensor.extract %root[%c0] : tensor<3xf64>
  %limit = arith.constant 0.5 : f64
  %on = arith.cmpf ogt, %first, %limit : f64
  %y = scf.if %on -> (tensor<3xf64>) {
    %sq = arith.mulf %first, %first : f64
    %t = tensor.insert %sq into %root[%c0] : tensor<3xf64>
    scf.yield %t : tensor<3xf64>
  } else {
    scf.yield %root : tensor<3xf64>
  }
  return %y : tensor<3xf64>
}
