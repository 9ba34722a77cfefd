// Scalars between functions, through loops and branches, and into the body of a nest.
#id = affine_map<(i) -> (i)>
func.func private @pair(%x: f64, %y: f64) -> (f64, f64) {
  %p = arith.mulf %x, %y : f64
  %s = math.sin %p : f64
  %q = arith.addf %s, %x : f64
  return %s, %q : f64, f64
}
func.func @f(%x: tensor<4xf64>, %w: tensor<3xf64>) -> (tensor<3xf64>, tensor<f64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %start = arith.constant 0.5 : f64
  %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %start) -> (f64) {
    %e = tensor.extract %x[%i] : tensor<4xf64>
    %s, %q = func.call @pair(%e, %acc) : (f64, f64) -> (f64, f64)
    %small = arith.constant 0.2 : f64
    %on = arith.cmpf ogt, %q, %small : f64
    %next = scf.if %on -> (f64) {
      %t = math.tanh %q : f64
      %u = arith.addf %t, %acc : f64
      scf.yield %u : f64
    } else {
      %u = arith.mulf %s, %acc : f64
      scf.yield %u : f64
    }
    scf.yield %next : f64
  }
  %two = scf.while (%v = %sum) : (f64) -> f64 {
    %limit = arith.constant 3.0 : f64
    %more = arith.cmpf olt, %v, %limit : f64
    scf.condition(%more) %v : f64
  } do {
  ^bb0(%v: f64):
    %factor = arith.constant 1.5 : f64
    %shift = arith.constant 0.7 : f64
    %m = arith.mulf %v, %factor : f64
    %n = arith.addf %m, %shift : f64
    scf.yield %n : f64
  }
  %empty = tensor.empty() : tensor<3xf64>
  %y = linalg.generic {indexing_maps = [#id, affine_map<(i) -> ()>, #id], iterator_types = ["parallel"]}
    ins(%w, %two : tensor<3xf64>, f64) outs(%empty : tensor<3xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %p = arith.mulf %a, %b : f64
    %q = arith.mulf %p, %sum : f64
    linalg.yield %q : f64
  } -> tensor<3xf64>
  %z = tensor.from_elements %two : tensor<f64>
  return %y, %z : tensor<3xf64>, tensor<f64>
}
