// RUN: gradir-opt %s -p 'to-structured,to-buffers,lower-kernels' --split-input-file | filecheck %s
// RUN: gradir-opt %s -p 'to-structured,to-buffers,to-loops' --split-input-file --check-semantics

// Lines of 9 positions and 9 channels: squares of 8, then what is left of both, point by point in the end.
// CHECK-LABEL: func.func private @contraction_0
// CHECK:         vector.outerproduct
// CHECK:         vector.transpose {{.*}} : vector<8x8xf32> to vector<8x8xf32>
// CHECK:         arith.maximumf {{.*}} : vector<8x8xf32>
// CHECK:         memref.store
func.func @lines(%x: tensor<1x8x4x9xf32>, %w: tensor<9x8x2x2xf32>) -> tensor<1x9x5x10xf32> {
  %x1 = nd.transpose %x perm [0, 2, 3, 1] : tensor<1x8x4x9xf32> -> tensor<1x4x9x8xf32>
  %w1 = nd.transpose %w perm [2, 3, 1, 0] : tensor<9x8x2x2xf32> -> tensor<2x2x8x9xf32>
  %y1 = nd.conv_general %x1, %w1 padding [1, 1, 1, 1] : tensor<1x4x9x8xf32>, tensor<2x2x8x9xf32> -> tensor<1x5x10x9xf32>
  %y = nd.transpose %y1 perm [0, 3, 1, 2] : tensor<1x5x10x9xf32> -> tensor<1x9x5x10xf32>
  %z = nd.relu %y : tensor<1x9x5x10xf32>
  return %z : tensor<1x9x5x10xf32>
}

// -----

// Tiles across the ends of lines: all lines wait together.
// CHECK-LABEL: func.func private @contraction_0
// CHECK:         memref.alloca() {{.*}} : memref<21x16xf32>
// CHECK:         vector.from_elements
// CHECK:         vector.transpose {{.*}} : vector<4x4xf32> to vector<4x4xf32>
func.func @across_lines(%x: tensor<1x8x3x7xf32>, %w: tensor<12x8x3x3xf32>) -> tensor<1x12x3x7xf32> {
  %x1 = nd.transpose %x perm [0, 2, 3, 1] : tensor<1x8x3x7xf32> -> tensor<1x3x7x8xf32>
  %w1 = nd.transpose %w perm [2, 3, 1, 0] : tensor<12x8x3x3xf32> -> tensor<3x3x8x12xf32>
  %y1 = nd.conv_general %x1, %w1 padding [1, 1, 1, 1] : tensor<1x3x7x8xf32>, tensor<3x3x8x12xf32> -> tensor<1x3x7x12xf32>
  %y = nd.transpose %y1 perm [0, 3, 1, 2] : tensor<1x3x7x12xf32> -> tensor<1x12x3x7xf32>
  return %y : tensor<1x12x3x7xf32>
}

// -----

// The same without turning: channels last.
// CHECK-LABEL: func.func private @contraction_0
// CHECK:         vector.from_elements
// CHECK:         vector.outerproduct
func.func @channels_last(%x: tensor<1x3x7x3xf32>, %w: tensor<3x3x3x12xf32>) -> tensor<1x3x7x12xf32> {
  %y = nd.conv_general %x, %w padding [1, 1, 1, 1] : tensor<1x3x7x3xf32>, tensor<3x3x3x12xf32> -> tensor<1x3x7x12xf32>
  return %y : tensor<1x3x7x12xf32>
}
