// RUN: gradir-opt %s -p loop-invariant-code-motion --split-input-file | filecheck %s

// The product of matrices and the function move, with the transpose that the product reads; the sum with the carried value stays.
// CHECK-LABEL: func.func @moves
// CHECK:         [[T:%.*]] = nd.transpose %w
// CHECK:         [[P:%.*]] = nd.dot_general [[T]], %w
// CHECK:         [[E:%.*]] = nd.exp [[P]]
// CHECK:         scf.for
// CHECK-NEXT:      nd.add
// CHECK-NEXT:      scf.yield
func.func @moves(%w: tensor<4x4xf32>, %n: index) -> tensor<4x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %w) -> (tensor<4x4xf32>) {
    %0 = nd.transpose %w perm [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
    %1 = nd.dot_general %0, %w contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %2 = nd.exp %1 : tensor<4x4xf32>
    %3 = nd.add %x, %2 : tensor<4x4xf32>
    scf.yield %3 : tensor<4x4xf32>
  }
  return %r : tensor<4x4xf32>
}

// -----

// A table of all differences is larger than what it is made of: cheaper to compute again than to read. That of equal shapes moves.
// CHECK-LABEL: func.func @outgrows
// CHECK-NOT:     nd.sub
// CHECK:         nd.mul %a, %b
// CHECK:         scf.for
// CHECK:           nd.sub
func.func @outgrows(%a: tensor<100xf32>, %b: tensor<100xf32>, %x: tensor<100x100xf32>, %n: index) -> tensor<100x100xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<100x100xf32>) {
    %0 = nd.broadcast %a dims [0] : tensor<100xf32> -> tensor<100x100xf32>
    %1 = nd.broadcast %b dims [1] : tensor<100xf32> -> tensor<100x100xf32>
    %2 = nd.sub %0, %1 : tensor<100x100xf32>
    %3 = nd.mul %s, %2 : tensor<100x100xf32>
    %4 = nd.mul %a, %b : tensor<100xf32>
    %5 = nd.broadcast %4 dims [0] : tensor<100xf32> -> tensor<100x100xf32>
    %6 = nd.add %3, %5 : tensor<100x100xf32>
    scf.yield %6 : tensor<100x100xf32>
  }
  return %r : tensor<100x100xf32>
}

// -----

// Out of two loops, and of both parts of a while; what prints stays.
// CHECK-LABEL: func.func @nested
// CHECK:         nd.cos %a
// CHECK:         nd.sin %a
// CHECK:         scf.while
// CHECK:           nd.reduce_sum
// CHECK:           scf.condition
// CHECK:           nd.print
// CHECK:           scf.for
func.func @nested(%a: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %limit = nd.constant splat(9.0 : f32) : tensor<f32>
  %r = scf.while (%x = %a) : (tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = nd.cos %a : tensor<4xf32>
    %1 = nd.mul %x, %0 : tensor<4xf32>
    %2 = nd.reduce_sum %1 dims [0] : tensor<4xf32> -> tensor<f32>
    %3 = nd.compare lt, %2, %limit : tensor<f32>
    %4 = tensor.extract %3[] : tensor<i1>
    scf.condition(%4) %x : tensor<4xf32>
  } do {
  ^bb0(%x: tensor<4xf32>):
    nd.print "{}", %a : tensor<4xf32>
    %y = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %x) -> (tensor<4xf32>) {
      %5 = nd.sin %a : tensor<4xf32>
      %6 = nd.add %s, %5 : tensor<4xf32>
      scf.yield %6 : tensor<4xf32>
    }
    scf.yield %y : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
