// RUN: gradir-opt %s | gradir-opt | filecheck %s
// RUN: gradir-opt %s --print-op-generic | gradir-opt | filecheck %s

// CHECK-LABEL: func.func @gathers
func.func @gathers(%x: tensor<4x5xf32>, %i: tensor<3x2xi32>, %b: tensor<2x5x3xf32>, %j: tensor<2x6x1xi32>, %k: tensor<4x2xi64>) {
  // CHECK: nd.gather_general %x, %i offset [0, 2] map [0, 1] sizes [2, 3] : tensor<4x5xf32>, tensor<3x2xi32> -> tensor<2x3x3xf32>
  %0 = nd.gather_general %x, %i offset [0, 2] map [0, 1] sizes [2, 3] : tensor<4x5xf32>, tensor<3x2xi32> -> tensor<2x3x3xf32>
  // CHECK: nd.gather_general %b, %j offset [2] collapsed [1] operand_batch [0] indices_batch [0] map [1] sizes [1, 1, 3] :
  %1 = nd.gather_general %b, %j offset [2] collapsed [1] operand_batch [0] indices_batch [0] map [1] sizes [1, 1, 3] : tensor<2x5x3xf32>, tensor<2x6x1xi32> -> tensor<2x6x3xf32>
  // CHECK: nd.take_along_axis %x, %k dim 1 : tensor<4x5xf32>, tensor<4x2xi64> -> tensor<4x2xf32>
  %2 = nd.take_along_axis %x, %k dim 1 : tensor<4x5xf32>, tensor<4x2xi64> -> tensor<4x2xf32>
  return
}

// CHECK-LABEL: func.func @scatters
func.func @scatters(%x: tensor<4xf32>, %n: tensor<4xi32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>, %m: tensor<3xi32>) {
  // CHECK: nd.scatter_general add, %x, %i, %u inserted [0] map [0] : tensor<4xf32>, tensor<3x1xi32>, tensor<3xf32> -> tensor<4xf32>
  %0 = nd.scatter_general add, %x, %i, %u inserted [0] map [0] : tensor<4xf32>, tensor<3x1xi32>, tensor<3xf32> -> tensor<4xf32>
  // CHECK: %{{.*}}, %{{.*}} = nd.scatter_general region, %x, %n, %i, %u, %m inserted [0] map [0]
  // CHECK-SAME: by (%[[A:.*]]: tensor<f32>, %{{.*}}: tensor<i32>, %[[B:.*]]: tensor<f32>, %[[C:.*]]: tensor<i32>) {
  // CHECK-NEXT: %[[S:.*]] = nd.sub %[[A]], %[[B]] : tensor<f32>
  // CHECK-NEXT: nd.yield %[[S]], %[[C]] : tensor<f32>, tensor<i32>
  %1, %2 = nd.scatter_general region, %x, %n, %i, %u, %m inserted [0] map [0] by (%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>) {
    %s = nd.sub %a, %c : tensor<f32>
    nd.yield %s, %d : tensor<f32>, tensor<i32>
  } : tensor<4xf32>, tensor<4xi32>, tensor<3x1xi32>, tensor<3xf32>, tensor<3xi32> -> tensor<4xf32>, tensor<4xi32>
  return
}
