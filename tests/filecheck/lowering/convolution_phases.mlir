// RUN: gradir-opt %s -p convert-nd-to-linalg --split-input-file | filecheck %s

// An input with gaps: four phases, each a convolution without gaps by every other element of the window, write interleaved slices of
// one result. All read one padded copy of the input.
// CHECK-LABEL: func.func @gaps
// CHECK:         tensor.insert_slice %x into {{.*}} : tensor<2x5x5x8xf32> into tensor<2x6x6x8xf32>
// CHECK:         [[Y:%.*]] = tensor.empty() : tensor<2x10x10x16xf32>
// CHECK:         tensor.extract_slice %w[1, 1, 0, 0] [1, 1, 8, 16] [2, 2, 1, 1]
// CHECK:         tensor.insert_slice {{.*}} into [[Y]][0, 0, 0, 0] [2, 5, 5, 16] [1, 2, 2, 1]
// CHECK:         tensor.extract_slice %w[1, 0, 0, 0] [1, 2, 8, 16] [2, 2, 1, 1]
// CHECK:         tensor.insert_slice {{.*}}[0, 0, 1, 0] [2, 5, 5, 16] [1, 2, 2, 1]
// CHECK:         tensor.extract_slice %w[0, 1, 0, 0] [2, 1, 8, 16] [2, 2, 1, 1]
// CHECK:         tensor.insert_slice {{.*}}[0, 1, 0, 0] [2, 5, 5, 16] [1, 2, 2, 1]
// CHECK:         tensor.extract_slice %w[0, 0, 0, 0] [2, 2, 8, 16] [2, 2, 1, 1]
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, (d1 + d4), (d2 + d5), d6)>
// CHECK:         tensor.insert_slice {{.*}}[0, 1, 1, 0] [2, 5, 5, 16] [1, 2, 2, 1]
func.func @gaps(%x: tensor<2x5x5x8xf32>, %w: tensor<3x3x8x16xf32>) -> tensor<2x10x10x16xf32> {
  %y = nd.conv_general %x, %w padding [1, 2, 1, 2] lhs_dilation [2, 2] : tensor<2x5x5x8xf32>, tensor<3x3x8x16xf32> -> tensor<2x10x10x16xf32>
  func.return %y : tensor<2x10x10x16xf32>
}

// -----

// A phase that meets no element stays zero.
// CHECK-LABEL: func.func @mostly_zero
// CHECK:         [[Z:%.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<2x10x16xf32>)
// CHECK:           arith.constant 0.000000e+00
// CHECK:         tensor.insert_slice {{.*}} into [[Z]][0, 0, 0] [2, 5, 16] [1, 2, 1] : tensor<2x5x16xf32> into tensor<2x10x16xf32>
// CHECK-NOT:     insert_slice
func.func @mostly_zero(%x: tensor<2x5x8xf32>, %w: tensor<1x8x16xf32>) -> tensor<2x10x16xf32> {
  %y = nd.conv_general %x, %w padding [0, 1] lhs_dilation [2] : tensor<2x5x8xf32>, tensor<1x8x16xf32> -> tensor<2x10x16xf32>
  func.return %y : tensor<2x10x16xf32>
}
