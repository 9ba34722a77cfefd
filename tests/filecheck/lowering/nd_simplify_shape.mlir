// RUN: gradir-opt %s -p nd-simplify | filecheck %s

// CHECK-LABEL: func.func @reshape(
// CHECK-NEXT: return %x, %x
func.func @reshape(%x: tensor<2x6xf32>) -> (tensor<2x6xf32>, tensor<2x6xf32>) {
  %0 = nd.reshape %x : tensor<2x6xf32> -> tensor<2x6xf32>
  %1 = nd.reshape %x : tensor<2x6xf32> -> tensor<12xf32>
  %2 = nd.reshape %1 : tensor<12xf32> -> tensor<2x6xf32>
  return %0, %2 : tensor<2x6xf32>, tensor<2x6xf32>
}

// CHECK-LABEL: func.func @transpose(
// CHECK-NEXT: %[[T:.*]] = nd.transpose %x perm [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
// CHECK-NEXT: return %[[T]], %x
func.func @transpose(%x: tensor<2x3x4xf32>) -> (tensor<3x4x2xf32>, tensor<2x3x4xf32>) {
  %0 = nd.transpose %x perm [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  %1 = nd.transpose %0 perm [2, 0, 1] : tensor<4x2x3xf32> -> tensor<3x4x2xf32>
  %2 = nd.transpose %1 perm [2, 0, 1] : tensor<3x4x2xf32> -> tensor<2x3x4xf32>
  return %1, %2 : tensor<3x4x2xf32>, tensor<2x3x4xf32>
}

// CHECK-LABEL: func.func @broadcast(
// CHECK-NEXT: %[[A:.*]] = nd.broadcast %x dims [2] : tensor<3xf32> -> tensor<4x2x3xf32>
// CHECK-NEXT: %[[B:.*]] = nd.broadcast %x dims [0] sizes (%n) : tensor<3xf32> -> tensor<3x?xf32, ["", "b"]>
// CHECK-NEXT: %[[C:.*]] = nd.broadcast %y dims [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
// CHECK-NEXT: %[[D:.*]] = nd.constant splat(1.0{{.*}} : f32) : tensor<5xf32>
// CHECK-NEXT: return %[[A]], %[[B]], %[[C]], %[[D]], %x
func.func @broadcast(%x: tensor<3xf32>, %y: tensor<2x3xf32>, %n: index)
    -> (tensor<4x2x3xf32>, tensor<3x?xf32, ["", "b"]>, tensor<3x2xf32>, tensor<5xf32>, tensor<3xf32>) {
  %0 = nd.broadcast %x dims [1] : tensor<3xf32> -> tensor<2x3xf32>
  %1 = nd.broadcast %0 dims [1, 2] : tensor<2x3xf32> -> tensor<4x2x3xf32>
  %2 = nd.broadcast %x dims [1] sizes (%n) : tensor<3xf32> -> tensor<?x3xf32, ["b", ""]>
  %3 = nd.transpose %2 perm [1, 0] : tensor<?x3xf32, ["b", ""]> -> tensor<3x?xf32, ["", "b"]>
  %4 = nd.transpose %y perm [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  %5 = nd.broadcast %4 dims [0, 1] : tensor<3x2xf32> -> tensor<3x2xf32>
  %6 = nd.broadcast %y dims [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  %one = nd.constant splat(1.0 : f32) : tensor<f32>
  %7 = nd.broadcast %one dims [] : tensor<f32> -> tensor<5xf32>
  %8 = nd.broadcast %x dims [0] : tensor<3xf32> -> tensor<3xf32>
  return %1, %3, %6, %7, %8 : tensor<4x2x3xf32>, tensor<3x?xf32, ["", "b"]>, tensor<3x2xf32>, tensor<5xf32>, tensor<3xf32>
}

// CHECK-LABEL: func.func @slice(
// CHECK-NEXT: %[[S:.*]] = nd.slice %x start [3] limit [10] stride [4] : tensor<10xf32> -> tensor<2xf32>
// CHECK-NEXT: %[[P:.*]] = nd.slice %y start [1] limit [3] : tensor<4xf32> -> tensor<2xf32>
// CHECK-NEXT: %[[D:.*]] = nd.slice %x start [8] limit [10] : tensor<10xf32> -> tensor<2xf32>
// CHECK-NEXT: return %x, %[[S]], %[[P]], %[[D]], %y
func.func @slice(%x: tensor<10xf32>, %y: tensor<4xf32>) -> (tensor<10xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<4xf32>) {
  %0 = nd.slice %x start [0] limit [10] : tensor<10xf32> -> tensor<10xf32>
  %1 = nd.slice %x start [1] limit [10] stride [2] : tensor<10xf32> -> tensor<5xf32>
  %2 = nd.slice %1 start [1] limit [5] stride [2] : tensor<5xf32> -> tensor<2xf32>
  %3 = nd.concatenate %x, %y dim 0 : tensor<10xf32>, tensor<4xf32> -> tensor<14xf32>
  %4 = nd.slice %3 start [11] limit [13] : tensor<14xf32> -> tensor<2xf32>
  %at = nd.constant splat(99 : i32) : tensor<i32>
  %5 = nd.dynamic_slice %x, %at sizes [2] : tensor<10xf32>, tensor<i32> -> tensor<2xf32>
  %6 = nd.dynamic_update_slice %y, %y, %at : tensor<4xf32>, tensor<4xf32>, tensor<i32> -> tensor<4xf32>
  return %0, %2, %4, %5, %6 : tensor<10xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @pad_concatenate_reverse(
// CHECK-NEXT: %[[Z:.*]] = nd.constant splat(0.0{{.*}} : f32) : tensor<6xf32>
// CHECK-NEXT: %[[C:.*]] = nd.concatenate %x, %x, %x dim 0
// CHECK-NEXT: return %x, %[[Z]], %x, %x, %[[C]], %x, %y
func.func @pad_concatenate_reverse(%x: tensor<4xf32>, %y: tensor<1xf32>, %e: tensor<0xf32>)
    -> (tensor<4xf32>, tensor<6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<12xf32>, tensor<4xf32>, tensor<1xf32>) {
  %zero = nd.constant splat(0.0 : f32) : tensor<f32>
  %0 = nd.pad %x, %zero low [0] high [0] : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %zeros = nd.constant splat(0.0 : f32) : tensor<4xf32>
  %1 = nd.pad %zeros, %zero low [1] high [1] : tensor<4xf32>, tensor<f32> -> tensor<6xf32>
  %2 = nd.concatenate %x dim 0 : tensor<4xf32> -> tensor<4xf32>
  %3 = nd.concatenate %e, %x dim 0 : tensor<0xf32>, tensor<4xf32> -> tensor<4xf32>
  %4 = nd.concatenate %x, %x dim 0 : tensor<4xf32>, tensor<4xf32> -> tensor<8xf32>
  %5 = nd.concatenate %4, %x dim 0 : tensor<8xf32>, tensor<4xf32> -> tensor<12xf32>
  %6 = nd.reverse %x dims [0] : tensor<4xf32>
  %7 = nd.reverse %6 dims [0] : tensor<4xf32>
  %8 = nd.reverse %y dims [0] : tensor<1xf32>
  return %0, %1, %2, %3, %5, %7, %8 : tensor<4xf32>, tensor<6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<12xf32>, tensor<4xf32>, tensor<1xf32>
}

// CHECK-LABEL: func.func @reduce(
// CHECK-NEXT: %[[R:.*]] = nd.reshape %x : tensor<1x3x2xf32> -> tensor<3x2xf32>
// CHECK-NEXT: %[[S:.*]] = nd.reduce_sum %x dims [0, 2] : tensor<1x3x2xf32> -> tensor<3xf32>
// CHECK-NEXT: %[[N:.*]] = nd.constant splat(5.0{{.*}} : f32) : tensor<3xf32>
// CHECK-NEXT: %[[M:.*]] = nd.mul %y, %[[N]]
// CHECK-NEXT: return %[[R]], %[[S]], %[[M]], %y, %x
func.func @reduce(%x: tensor<1x3x2xf32>, %y: tensor<3xf32>) -> (tensor<3x2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<1x3x2xf32>) {
  %0 = nd.reduce_max %x dims [0] : tensor<1x3x2xf32> -> tensor<3x2xf32>
  %1 = nd.reduce_sum %x dims [2] : tensor<1x3x2xf32> -> tensor<1x3xf32>
  %2 = nd.reduce_sum %1 dims [0] : tensor<1x3xf32> -> tensor<3xf32>
  %3 = nd.broadcast %y dims [0] : tensor<3xf32> -> tensor<3x5xf32>
  %4 = nd.reduce_sum %3 dims [1] : tensor<3x5xf32> -> tensor<3xf32>
  %5 = nd.reduce_max %3 dims [1] : tensor<3x5xf32> -> tensor<3xf32>
  %6 = nd.reduce_max %x dims [] : tensor<1x3x2xf32> -> tensor<1x3x2xf32>
  return %0, %2, %4, %5, %6 : tensor<3x2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<1x3x2xf32>
}
