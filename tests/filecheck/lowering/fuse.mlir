// RUN: gradir-opt %s -p convert-nd-to-linalg,fuse --split-input-file | filecheck %s

// A contraction takes its epilogue; the reduction of its result is a kernel of its own.
// CHECK-LABEL: func.func @layer
// CHECK:         linalg.generic {{.*}}"reduction"]{{.*}} attrs = {gradir.group = 0 : i64}
// CHECK:         linalg.generic {{.*}} attrs = {gradir.group = 0 : i64}
// CHECK:         linalg.generic {{.*}} attrs = {gradir.group = 0 : i64}
// CHECK:         linalg.generic {{.*}} attrs = {gradir.group = 1 : i64}
func.func @layer(%x: tensor<4x6xf32>, %w: tensor<6x8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
  %0 = nd.dot_general %x, %w contract [1] x [0] : tensor<4x6xf32>, tensor<6x8xf32> -> tensor<4x8xf32>
  %1 = nd.broadcast %b dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %2 = nd.add %0, %1 : tensor<4x8xf32>
  %3 = nd.relu %2 : tensor<4x8xf32>
  %4 = nd.reduce_sum %3 dims [0] : tensor<4x8xf32> -> tensor<8xf32>
  return %3, %4 : tensor<4x8xf32>, tensor<8xf32>
}

// -----

// The value of %a reaches %s also by way of the contraction: joining the two would make a cycle.
// CHECK-LABEL: func.func @cycle
// CHECK:         gradir.group = 0 : i64
// CHECK:         gradir.group = 1 : i64
// CHECK:         gradir.group = 1 : i64
func.func @cycle(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = nd.exp %x : tensor<8x8xf32>
  %d = nd.dot_general %a, %w contract [1] x [0] : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %s = nd.add %a, %d : tensor<8x8xf32>
  return %s : tensor<8x8xf32>
}

// -----

// The predicate is computed in both of its consumers.
// CHECK-LABEL: func.func @predicate
// CHECK-COUNT-2: arith.cmpf ogt
// CHECK-NOT:   arith.cmpf
func.func @predicate(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %m = nd.compare gt, %x, %y : tensor<8x8xf32>
  %a = nd.select %m, %x, %y : tensor<8x8xf32>
  %d = nd.dot_general %a, %w contract [1] x [0] : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %b = nd.select %m, %d, %y : tensor<8x8xf32>
  return %a, %b : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// No nest reads the last predicate, so it is stored: it joins what it is computed from, the predicates among it and the reduction.
// CHECK-LABEL: func.func @condition
// CHECK-COUNT-4: gradir.group = 0 : i64
// CHECK-NOT:   gradir.group
func.func @condition(%x: tensor<64xf32>, %limit: tensor<f32>, %n: tensor<i32>, %last: tensor<i32>) -> i1 {
  %m = nd.reduce_max %x dims [0] : tensor<64xf32> -> tensor<f32>
  %far = nd.compare gt, %m, %limit : tensor<f32>
  %early = nd.compare lt, %n, %last : tensor<i32>
  %both = nd.and %far, %early : tensor<i1>
  %stop = tensor.extract %both[] : tensor<i1>
  return %stop : i1
}
