// RUN: gradir-opt %s -p 'to-structured,to-buffers,lower-kernels' --split-input-file | filecheck %s
// RUN: gradir-opt %s -p 'to-structured,to-buffers,to-loops' --split-input-file --check-semantics

// A transpose goes in square tiles: read in rows of the operand, turned in registers, written in rows of the result; the rest in smaller
// ones, of which the last are points.
// CHECK-LABEL: func.func private @elementwise_0
// CHECK-SAME:  (%[[X:.*]]: memref<20x11xf32> {{.*}}, %[[Y:.*]]: memref<11x20xf32>
// CHECK:           %[[ROWS:.*]] = vector.transfer_read %[[X]][%[[J:.*]], %[[I:.*]]], {{.*}} : memref<20x11xf32>, vector<8x8xf32>
// CHECK:           %[[TURNED:.*]] = vector.transpose %[[ROWS]], [1, 0]
// CHECK:           vector.transfer_write %[[TURNED]], %[[Y]][%[[I]], %[[J]]]
// CHECK:       vector.transfer_read %[[X]]{{.*}}, vector<4x4xf32>
// CHECK:       vector.transfer_read %[[X]]{{.*}}, vector<2x2xf32>
// CHECK:       memref.load %[[X]]
// CHECK:       memref.store {{.*}}, %[[Y]]
func.func @transpose(%x: tensor<20x11xf32>) -> tensor<11x20xf32> {
  %0 = nd.transpose %x perm [1, 0] : tensor<20x11xf32> -> tensor<11x20xf32>
  return %0 : tensor<11x20xf32>
}

// -----

// Fused: one operand is turned, another is read as it lies, the third does not vary along the rows.
// CHECK-LABEL: func.func private @elementwise_0
// CHECK:       %[[A:.*]] = vector.transpose
// CHECK:       %[[B:.*]] = vector.transfer_read {{.*}} : memref<16x24xf32>, vector<8x8xf32>
// CHECK:       arith.mulf %[[A]], %[[B]] : vector<8x8xf32>
// CHECK:       vector.broadcast {{.*}} : vector<8xf32> to vector<8x8xf32>
// CHECK-NOT:   memref.load
// CHECK:       vector.transfer_write
func.func @fused(%x: tensor<24x16xf32>, %y: tensor<16x24xf32>, %b: tensor<24xf32>) -> tensor<16x24xf32> {
  %0 = nd.transpose %x perm [1, 0] : tensor<24x16xf32> -> tensor<16x24xf32>
  %1 = nd.mul %0, %y : tensor<16x24xf32>
  %2 = nd.broadcast %b dims [1] : tensor<24xf32> -> tensor<16x24xf32>
  %3 = nd.add %1, %2 : tensor<16x24xf32>
  return %3 : tensor<16x24xf32>
}

// -----

// Channels first: every image is a transpose of its positions and channels.
// CHECK-LABEL: func.func private @elementwise_0
// CHECK:       scf.for
// CHECK:         vector.transfer_read {{.*}} : memref<2x12x8xf32>, vector<8x8xf32>
// CHECK:         vector.transpose
func.func @channels_first(%x: tensor<2x3x4x8xf32>) -> tensor<2x8x3x4xf32> {
  %0 = nd.transpose %x perm [0, 3, 1, 2] : tensor<2x3x4x8xf32> -> tensor<2x8x3x4xf32>
  return %0 : tensor<2x8x3x4xf32>
}

// -----

// f64: tiles of four.
// CHECK: vector.transpose {{.*}} : vector<4x4xf64>
func.func @doubles(%x: tensor<9x6xf64>) -> tensor<6x9xf64> {
  %0 = nd.transpose %x perm [1, 0] : tensor<9x6xf64> -> tensor<6x9xf64>
  return %0 : tensor<6x9xf64>
}
