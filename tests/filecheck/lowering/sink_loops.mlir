// RUN: gradir-opt %s -p convert-nd-to-linalg,sink-loops,canonicalize,dce --split-input-file | filecheck %s

// A counted loop of elementwise ops: each element runs through it on its own. The array %a is read once, before.
// CHECK-LABEL: func.func @counted
// CHECK:         [[E:%.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK-NEXT:    linalg.generic {{.*}} ins(%a : tensor<4x8xf32>) outs([[E]] : tensor<4x8xf32>)
// CHECK:           scf.for {{.*}} -> (f32) {
// CHECK:             arith.mulf
// CHECK:             math.sin
// CHECK:             scf.yield
// CHECK:           linalg.yield
// CHECK-NOT:     scf.for
func.func @counted(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%x = %a) -> (tensor<4x8xf32>) {
    %0 = nd.mul %x, %a : tensor<4x8xf32>
    %1 = nd.sin %0 : tensor<4x8xf32>
    scf.yield %1 : tensor<4x8xf32>
  }
  return %r : tensor<4x8xf32>
}

// -----

// Elements that have escaped do not change any more: each may leave the loop when it has.
// CHECK-LABEL: func.func @escape
// CHECK:         linalg.generic
// CHECK:           scf.while {{.*}} : (f32, i1) -> (f32, i1) {
// CHECK:             scf.condition
// CHECK:           linalg.yield
func.func @escape(%a: tensor<16xf32>) -> tensor<16xf32> {
  %t = nd.constant splat(true) : tensor<16xi1>
  %four = nd.constant splat(4.0 : f32) : tensor<16xf32>
  %r:2 = scf.while (%x = %a, %live = %t) : (tensor<16xf32>, tensor<16xi1>) -> (tensor<16xf32>, tensor<16xi1>) {
    %0 = nd.reduce_any %live dims [0] : tensor<16xi1> -> tensor<i1>
    %1 = tensor.extract %0[] : tensor<i1>
    scf.condition(%1) %x, %live : tensor<16xf32>, tensor<16xi1>
  } do {
  ^bb0(%x: tensor<16xf32>, %live: tensor<16xi1>):
    %2 = nd.add %x, %x : tensor<16xf32>
    %3 = nd.select %live, %2, %x : tensor<16xf32>
    %4 = nd.compare le, %3, %four : tensor<16xf32>
    scf.yield %3, %4 : tensor<16xf32>, tensor<16xi1>
  }
  return %r#0 : tensor<16xf32>
}

// -----

// Here they go on changing until the last one has passed 5: the loop stays as it is.
// CHECK-LABEL: func.func @together
// CHECK:         scf.while {{.*}} : (tensor<16xf32>) -> tensor<16xf32>
func.func @together(%a: tensor<16xf32>) -> tensor<16xf32> {
  %five = nd.constant splat(5.0 : f32) : tensor<16xf32>
  %one = nd.constant splat(1.0 : f32) : tensor<16xf32>
  %r = scf.while (%x = %a) : (tensor<16xf32>) -> (tensor<16xf32>) {
    %0 = nd.compare lt, %x, %five : tensor<16xf32>
    %1 = nd.reduce_any %0 dims [0] : tensor<16xi1> -> tensor<i1>
    %2 = tensor.extract %1[] : tensor<i1>
    scf.condition(%2) %x : tensor<16xf32>
  } do {
  ^bb0(%x: tensor<16xf32>):
    %3 = nd.add %x, %one : tensor<16xf32>
    scf.yield %3 : tensor<16xf32>
  }
  return %r : tensor<16xf32>
}

// -----

// A product of matrices is no elementwise op.
// CHECK-LABEL: func.func @mixing
// CHECK:         scf.for {{.*}} -> (tensor<8x8xf32>)
func.func @mixing(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%x = %a) -> (tensor<8x8xf32>) {
    %0 = nd.dot_general %x, %a contract [1] x [0] : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    scf.yield %0 : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
}

// -----

// What ends the loop is asked of an array of another shape: no element of %a has a condition of its own.
// CHECK-LABEL: func.func @of_others
// CHECK:         scf.while {{.*}} -> (tensor<4xf32>, i32)
func.func @of_others(%a: tensor<4xf32>, %mask: tensor<7xi1>, %most: i32) -> tensor<4xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r, %n = scf.while (%x = %a, %i = %c0) : (tensor<4xf32>, i32) -> (tensor<4xf32>, i32) {
    %0 = nd.reduce_any %mask dims [0] : tensor<7xi1> -> tensor<i1>
    %1 = tensor.extract %0[] : tensor<i1>
    %2 = arith.cmpi slt, %i, %most : i32
    %3 = arith.andi %1, %2 : i1
    scf.condition(%3) %x, %i : tensor<4xf32>, i32
  } do {
  ^bb0(%x: tensor<4xf32>, %i: i32):
    %4 = arith.addi %i, %c1 : i32
    scf.yield %x, %4 : tensor<4xf32>, i32
  }
  return %r : tensor<4xf32>
}

// -----

// Sizes without names may differ: nothing says that two tensors have an element for each other's.
// CHECK-LABEL: func.func @unnamed
// CHECK:         scf.for {{.*}} -> (tensor<?xf32>)
func.func @unnamed(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%d) : tensor<?xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<?xf32>) {
    %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%s : tensor<?xf32>) outs(%e : tensor<?xf32>) {
    ^bb0(%a: f32, %o: f32):
      %1 = arith.mulf %a, %a : f32
      linalg.yield %1 : f32
    } -> tensor<?xf32>
    scf.yield %0 : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
