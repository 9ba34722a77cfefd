// RUN: gradir-opt %s | gradir-opt | filecheck %s
// RUN: gradir-opt %s --print-op-generic | gradir-opt | filecheck %s

// CHECK-LABEL: func.func @f
func.func @f(%x: tensor<2x4xf32>, %i: tensor<2x4xi32>, %a: tensor<f32>, %b: tensor<i32>, %s: tensor<2x2xf32>) {
  // CHECK: %{{.*}}, %{{.*}} = nd.reduce %x, %i init %a, %b dims [1] by
  // CHECK-SAME: (%[[P:.*]]: tensor<f32>, %[[Q:.*]]: tensor<i32>, %[[V:.*]]: tensor<f32>, %{{.*}}: tensor<i32>) {
  // CHECK-NEXT: %[[R:.*]] = nd.sub %[[P]], %[[V]] : tensor<f32>
  // CHECK-NEXT: nd.yield %[[R]], %[[Q]] : tensor<f32>, tensor<i32>
  // CHECK-NEXT: } : tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>, tensor<i32> -> tensor<2xf32>, tensor<2xi32>
  %0, %1 = nd.reduce %x, %i init %a, %b dims [1] by (%p: tensor<f32>, %q: tensor<i32>, %v: tensor<f32>, %w: tensor<i32>) {
    %r = nd.sub %p, %v : tensor<f32>
    nd.yield %r, %q : tensor<f32>, tensor<i32>
  } : tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>, tensor<i32> -> tensor<2xf32>, tensor<2xi32>
  // CHECK: nd.reduce_window_general %x init %a window [1, 2] strides [1, 2] padding [0, 0, 1, 0] dilations [1, 2] base_dilations [2, 1] by
  %2 = nd.reduce_window_general %x init %a window [1, 2] strides [1, 2] padding [0, 0, 1, 0] dilations [1, 2] base_dilations [2, 1] by (%p: tensor<f32>, %v: tensor<f32>) {
    %r = nd.mul %p, %v : tensor<f32>
    nd.yield %r : tensor<f32>
  } : tensor<2x4xf32>, tensor<f32> -> tensor<3x2xf32>
  // CHECK: nd.select_and_scatter_general %x, %s, %a window [1, 2] strides [1, 2] select (%[[P:.*]]: tensor<f32>, %[[V:.*]]: tensor<f32>) {
  // CHECK: } scatter (%{{.*}}: tensor<f32>, %{{.*}}: tensor<f32>) {
  // CHECK: } : tensor<2x4xf32>, tensor<2x2xf32>, tensor<f32>
  %3 = nd.select_and_scatter_general %x, %s, %a window [1, 2] strides [1, 2] select (%p: tensor<f32>, %v: tensor<f32>) {
    %c = nd.compare gt, %p, %v : tensor<f32>
    nd.yield %c : tensor<i1>
  } scatter (%p: tensor<f32>, %v: tensor<f32>) {
    %r = nd.max %p, %v : tensor<f32>
    nd.yield %r : tensor<f32>
  } : tensor<2x4xf32>, tensor<2x2xf32>, tensor<f32>
  return
}
