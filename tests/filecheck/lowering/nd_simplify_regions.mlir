// RUN: gradir-opt %s -p nd-simplify,dce --check-semantics | filecheck %s

// CHECK-LABEL: func.func @greatest
// CHECK-NEXT:    %[[R:.*]] = nd.reduce_max %x dims [1]
// CHECK-NEXT:    %[[S:.*]] = nd.broadcast %s dims []
// CHECK-NEXT:    nd.max %[[S]], %[[R]]
func.func @greatest(%x: tensor<2x3xf32>, %s: tensor<f32>) -> tensor<2xf32> {
  %0 = nd.reduce %x init %s dims [1] by (%a: tensor<f32>, %b: tensor<f32>) {
    %c = nd.max %b, %a : tensor<f32>
    nd.yield %c : tensor<f32>
  } : tensor<2x3xf32>, tensor<f32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// The order of a float sum is part of what the program says.
// CHECK-LABEL: func.func @sum_in_order
// CHECK:         nd.reduce %x
func.func @sum_in_order(%x: tensor<3xf32>, %s: tensor<f32>) -> tensor<f32> {
  %0 = nd.reduce %x init %s dims [0] by (%a: tensor<f32>, %b: tensor<f32>) {
    %c = nd.add %a, %b : tensor<f32>
    nd.yield %c : tensor<f32>
  } : tensor<3xf32>, tensor<f32> -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: func.func @count
// CHECK-NEXT:    %[[R:.*]] = nd.reduce_sum %x dims [0]
// CHECK-NEXT:    nd.add %s, %[[R]] : tensor<i32>
func.func @count(%x: tensor<3xi32>, %s: tensor<i32>) -> tensor<i32> {
  %0 = nd.reduce %x init %s dims [0] by (%a: tensor<i32>, %b: tensor<i32>) {
    %c = nd.add %a, %b : tensor<i32>
    nd.yield %c : tensor<i32>
  } : tensor<3xi32>, tensor<i32> -> tensor<i32>
  return %0 : tensor<i32>
}

// CHECK-LABEL: func.func @unread
// CHECK-NEXT:    %[[S:.*]] = nd.sort %x dim 0 descending : tensor<4xf32>
// CHECK-NEXT:    return %[[S]], %z
func.func @unread(%x: tensor<4xf32>, %y: tensor<4xi32>, %z: tensor<4x1xf32>) -> (tensor<4xf32>, tensor<4x1xf32>) {
  %0:2 = nd.sort %x, %y dim 0 descending : tensor<4xf32>, tensor<4xi32>
  %1 = nd.sort %z dim 1 : tensor<4x1xf32>
  return %0#0, %1 : tensor<4xf32>, tensor<4x1xf32>
}

// CHECK-LABEL: func.func @rows
// CHECK-NEXT:    %[[I:.*]] = nd.reshape %i : tensor<2x1xi32> -> tensor<2xi32>
// CHECK-NEXT:    %[[R:.*]] = nd.gather %x, %[[I]] dim 1
// CHECK-NEXT:    nd.transpose %[[R]] perm [1, 0]
func.func @rows(%x: tensor<3x4xf32>, %i: tensor<2x1xi32>) -> tensor<2x3xf32> {
  %0 = nd.gather_general %x, %i offset [1] collapsed [1] map [1] sizes [3, 1] : tensor<3x4xf32>, tensor<2x1xi32> -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// Constants and identities inside of a region are folded there; equal ops are one.
// CHECK-LABEL: func.func @inside
// CHECK:         nd.reduce %x init %s dims [0] by (%[[A:.*]]: tensor<f32>, %[[B:.*]]: tensor<f32>) {
// CHECK-NEXT:      %[[C:.*]] = nd.sub %[[A]], %[[B]]
// CHECK-NEXT:      nd.yield %[[C]]
func.func @inside(%x: tensor<3xf32>, %s: tensor<f32>) -> tensor<f32> {
  %0 = nd.reduce %x init %s dims [0] by (%a: tensor<f32>, %b: tensor<f32>) {
    %one = nd.constant splat(1.0 : f32) : tensor<f32>
    %c = nd.mul %a, %one : tensor<f32>
    %d = nd.sub %c, %b : tensor<f32>
    %unused = nd.neg %d : tensor<f32>
    nd.yield %d : tensor<f32>
  } : tensor<3xf32>, tensor<f32> -> tensor<f32>
  return %0 : tensor<f32>
}
