// RUN: gradir-opt %s | gradir-opt | filecheck %s
// RUN: gradir-opt %s --print-op-generic | gradir-opt | filecheck %s

// CHECK-LABEL: func.func @f
func.func @f(%x: tensor<2x3xf32>, %i: tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xi32>, tensor<2x2xf32>) {
  // CHECK: nd.sort %x dim 0 : tensor<2x3xf32>
  %0 = nd.sort %x dim 0 : tensor<2x3xf32>
  // CHECK: %[[S:.*]], %{{.*}} = nd.sort %{{.*}}, %i dim 1 keys 2 descending total_order : tensor<2x3xf32>, tensor<2x3xi32>
  %1, %2 = nd.sort %0, %i dim 1 keys 2 descending total_order : tensor<2x3xf32>, tensor<2x3xi32>
  // CHECK: nd.sort %[[S]] dim 1 by (%[[A:.*]]: tensor<f32>, %[[B:.*]]: tensor<f32>) {
  // CHECK-NEXT: %[[C:.*]] = nd.compare gt, %[[A]], %[[B]] : tensor<f32>
  // CHECK-NEXT: nd.yield %[[C]] : tensor<i1>
  // CHECK-NEXT: } : tensor<2x3xf32>
  %3 = nd.sort %1 dim 1 by (%a: tensor<f32>, %b: tensor<f32>) {
    %c = nd.compare gt, %a, %b : tensor<f32>
    nd.yield %c : tensor<i1>
  } : tensor<2x3xf32>
  // CHECK: nd.top_k %{{.*}} k 2 dim 1 : tensor<2x3xf32> -> tensor<2x2xf32>, tensor<2x2xi64>
  %4, %5 = nd.top_k %3 k 2 dim 1 : tensor<2x3xf32> -> tensor<2x2xf32>, tensor<2x2xi64>
  return %3, %2, %4 : tensor<2x3xf32>, tensor<2x3xi32>, tensor<2x2xf32>
}
