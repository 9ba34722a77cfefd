// RUN: gradir-opt %s -p 'nd-expand,convert-nd-to-linalg' --split-input-file | filecheck %s
// RUN: gradir-opt %s -p 'to-structured,to-buffers,to-loops' --split-input-file --check-semantics

// Of a sort only three elements a row are read: they are kept in order, and the others compare with the last of them.
// CHECK-LABEL: func.func private @select_0
// CHECK-SAME:    tensor<2x20xf32>, {{.*}} -> (tensor<2x3xf32>, tensor<2x3xi32>)
// CHECK-NOT:   func.func private @sort
// CHECK-LABEL: func.func @top_k
func.func @top_k(%x: tensor<2x20xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>) {
  %v, %i = nd.top_k %x k 3 dim 1 : tensor<2x20xf32> -> tensor<2x3xf32>, tensor<2x3xi32>
  return %v, %i : tensor<2x3xf32>, tensor<2x3xi32>
}

// -----

// Along the first dimension, which comes last for that.
// CHECK: func.func private @select_0
// CHECK-SAME: -> (tensor<2x1xi32>, tensor<2x1xi32>)
// CHECK-LABEL: func.func @greatest_of_columns
// CHECK:         call @select_0
func.func @greatest_of_columns(%x: tensor<9x2xi32>) -> (tensor<1x2xi32>, tensor<1x2xi32>) {
  %v, %i = nd.top_k %x k 1 dim 0 : tensor<9x2xi32> -> tensor<1x2xi32>, tensor<1x2xi32>
  return %v, %i : tensor<1x2xi32>, tensor<1x2xi32>
}

// -----

// Half of a row is sorted, and so is a row whose end is read.
// CHECK-NOT:     @select
// CHECK-LABEL: func.func private @sort_0
// CHECK-NOT:     @select
// CHECK-LABEL: func.func @end
// CHECK-NOT:     @select
func.func @half(%x: tensor<2x8xf32>) -> (tensor<2x4xf32>, tensor<2x4xi32>) {
  %v, %i = nd.top_k %x k 4 dim 1 : tensor<2x8xf32> -> tensor<2x4xf32>, tensor<2x4xi32>
  return %v, %i : tensor<2x4xf32>, tensor<2x4xi32>
}
func.func @end(%x: tensor<2x8xf32>) -> tensor<2x1xf32> {
  %s = nd.sort %x dim 1 : tensor<2x8xf32>
  %e = nd.slice %s start [0, 7] limit [2, 8] : tensor<2x8xf32> -> tensor<2x1xf32>
  return %e : tensor<2x1xf32>
}
