// RUN: gradir-opt %s -p 'count-flops{trips=10}' | filecheck %s

// CHECK-LABEL: func.func private @cell
// CHECK-SAME:    gradir.flops = 60 : i64
func.func private @cell(%h: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  // 2 * 6 * 4 for the product, 6 and 6 for the others; the slice is free
  %s = nd.slice %w start [0, 0] limit [4, 3] : tensor<4x4xf32> -> tensor<4x3xf32>
  %a = nd.dot_general %h, %s contract [1] x [0] : tensor<2x4xf32>, tensor<4x3xf32> -> tensor<2x3xf32>
  %b = nd.tanh %a : tensor<2x3xf32>
  %c = nd.mul %b, %b : tensor<2x3xf32>
  %zero = nd.constant splat(0.0 : f32) : tensor<f32>
  %d = nd.pad %c, %zero low [0, 0] high [0, 1] : tensor<2x3xf32>, tensor<f32> -> tensor<2x4xf32>
  return %d : tensor<2x4xf32>
}

// Five trips of a call each: 5 * 60.
// CHECK-LABEL: func.func @counted
// CHECK-SAME:    gradir.flops = 300 : i64
func.func @counted(%h: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c10 = arith.constant 10 : index
  %r = scf.for %i = %c1 to %c10 step %c2 iter_args(%s = %h) -> (tensor<2x4xf32>) {
    %n = func.call @cell(%s, %w) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    scf.yield %n : tensor<2x4xf32>
  }
  return %r : tensor<2x4xf32>
}

// Ten trips, eleven tests (1), the dearer side (2 * 3); integers are free.
// CHECK-LABEL: func.func @unknown
// CHECK-SAME:    gradir.flops = 71 : i64
func.func @unknown(%x: tensor<3xf32>, %s: tensor<f32>, %flag: i1, %k: tensor<3xi32>) -> (tensor<3xf32>, tensor<3xi32>) {
  %r, %j = scf.while (%a = %x, %b = %k) : (tensor<3xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xi32>) {
    %more = nd.compare lt, %s, %s : tensor<f32>
    %m = tensor.extract %more[] : tensor<i1>
    scf.condition(%m) %a, %b : tensor<3xf32>, tensor<3xi32>
  } do {
  ^bb0(%a: tensor<3xf32>, %b: tensor<3xi32>):
    %n = scf.if %flag -> (tensor<3xf32>) {
      %e = nd.exp %a : tensor<3xf32>
      %f = nd.add %e, %a : tensor<3xf32>
      scf.yield %f : tensor<3xf32>
    } else {
      %f = nd.neg %a : tensor<3xf32>
      scf.yield %f : tensor<3xf32>
    }
    %i = nd.add %b, %b : tensor<3xi32>
    scf.yield %n, %i : tensor<3xf32>, tensor<3xi32>
  }
  return %r, %j : tensor<3xf32>, tensor<3xi32>
}

// CHECK-LABEL: func.func @families
// CHECK-SAME:    gradir.flops = 1883 : i64
func.func @families(%x: tensor<8x8xf64>, %image: tensor<1x6x6x2xf64>, %k: tensor<3x3x2x4xf64>) -> (tensor<8x8xf64>, tensor<8xf64>, tensor<1x4x4x4xf64>) {
  %c = nd.cholesky %x lower : tensor<8x8xf64> -> tensor<8x8xf64>                    // ceil(512 / 3) = 171
  %s = nd.reduce_max %c dims [1] : tensor<8x8xf64> -> tensor<8xf64>                 // 64
  %m = nd.compare lt, %c, %x : tensor<8x8xf64>                                      // 64
  %t = nd.select %m, %c, %x : tensor<8x8xf64>                                       // 64
  %y = nd.sort %s dim 0 : tensor<8xf64>                                             // 8 * 3
  %p = nd.reduce_window sum, %image window [1, 2, 2, 1] : tensor<1x6x6x2xf64> -> tensor<1x5x5x2xf64>  // 50 * 4
  %z = nd.conv_general %p, %k : tensor<1x5x5x2xf64>, tensor<3x3x2x4xf64> -> tensor<1x3x3x4xf64>      // 2 * 36 * 18
  %zero = nd.constant splat(0.0 : f64) : tensor<f64>
  %w = nd.pad %z, %zero low [0, 0, 0, 0] high [0, 1, 1, 0] : tensor<1x3x3x4xf64>, tensor<f64> -> tensor<1x4x4x4xf64>
  return %t, %y, %w : tensor<8x8xf64>, tensor<8xf64>, tensor<1x4x4x4xf64>
}

// Five at each of 4 x 3 points: a strong product (its tests for zero and its choice are part of it), a comparison, a choice, exp, a sum.
// CHECK-LABEL: func.func @nest
// CHECK-SAME:    gradir.flops = 60 : i64
func.func @nest(%x: tensor<4x3xf64>, %y: tensor<3xf64>) -> tensor<4xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<4xf64>
  %f = linalg.fill ins(%zero : f64) outs(%e : tensor<4xf64>) -> tensor<4xf64>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%x, %y : tensor<4x3xf64>, tensor<3xf64>) outs(%f : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %sum: f64):
    %product = arith.mulf %a, %b : f64
    %a0 = arith.cmpf oeq, %a, %zero : f64
    %b0 = arith.cmpf oeq, %b, %zero : f64
    %either = arith.ori %a0, %b0 : i1
    %strong = arith.select %either, %zero, %product : f64
    %less = arith.cmpf olt, %a, %b : f64
    %chosen = arith.select %less, %strong, %b : f64
    %exp = math.exp %chosen : f64
    %total = arith.addf %sum, %exp : f64
    linalg.yield %total : f64
  } -> tensor<4xf64>
  return %r : tensor<4xf64>
}
