// RUN: gradir-opt %s -p convert-nd-to-linalg --split-input-file | filecheck %s

// Results of convolutions lie in memory with channels last, what follows element by element keeps that order: the transposes between two
// convolutions are gone. The input is padded in its own order. The returned value is put into its own order once, at the end.
// CHECK-LABEL: func.func @middle
// CHECK:         tensor.insert_slice %x into {{.*}} : tensor<2x3x16x16xf32> into tensor<2x3x18x18xf32>
// CHECK:         %y1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, (d1 + d5), (d2 + d6))>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3, d4, d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>]
// CHECK:         } -> tensor<2x16x16x8xf32>
// CHECK:         %z = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, {{.*}}ins(%y1 : tensor<2x16x16x8xf32>)
// CHECK:         tensor.insert_slice %z into {{.*}} : tensor<2x16x16x8xf32> into tensor<2x18x18x8xf32>
// CHECK:         %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, {{.*}}ins(%u1, %z : tensor<2x16x16x8xf32>, tensor<2x16x16x8xf32>)
// CHECK:         [[R:%.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>, {{.*}}ins(%r : tensor<2x16x16x8xf32>)
// CHECK:         func.return [[R]] : tensor<2x8x16x16xf32>
func.func @middle(%x: tensor<2x3x16x16xf32>, %w: tensor<8x3x3x3xf32>, %v: tensor<8x8x3x3xf32>) -> tensor<2x8x16x16xf32> {
  %x1 = nd.transpose %x perm [0, 2, 3, 1] : tensor<2x3x16x16xf32> -> tensor<2x16x16x3xf32>
  %w1 = nd.transpose %w perm [2, 3, 1, 0] : tensor<8x3x3x3xf32> -> tensor<3x3x3x8xf32>
  %y1 = nd.conv_general %x1, %w1 padding [1, 1, 1, 1] : tensor<2x16x16x3xf32>, tensor<3x3x3x8xf32> -> tensor<2x16x16x8xf32>
  %y = nd.transpose %y1 perm [0, 3, 1, 2] : tensor<2x16x16x8xf32> -> tensor<2x8x16x16xf32>
  %z = nd.relu %y : tensor<2x8x16x16xf32>
  %z1 = nd.transpose %z perm [0, 2, 3, 1] : tensor<2x8x16x16xf32> -> tensor<2x16x16x8xf32>
  %v1 = nd.transpose %v perm [2, 3, 1, 0] : tensor<8x8x3x3xf32> -> tensor<3x3x8x8xf32>
  %u1 = nd.conv_general %z1, %v1 padding [1, 1, 1, 1] : tensor<2x16x16x8xf32>, tensor<3x3x8x8xf32> -> tensor<2x16x16x8xf32>
  %u = nd.transpose %u1 perm [0, 3, 1, 2] : tensor<2x16x16x8xf32> -> tensor<2x8x16x16xf32>
  %r = nd.add %u, %z : tensor<2x8x16x16xf32>
  func.return %r : tensor<2x8x16x16xf32>
}

// -----

// A reduction runs its loops as memory lies: the mean of each channel reads whole rows of channels.
// CHECK-LABEL: func.func @statistics
// CHECK:         %s = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d3)>], iterator_types = ["reduction", "reduction", "reduction", "parallel"]} ins(%y1 : tensor<2x16x16x8xf32>)
func.func @statistics(%x: tensor<2x16x16x3xf32>, %w: tensor<1x1x3x8xf32>) -> tensor<8xf32> {
  %y1 = nd.conv_general %x, %w : tensor<2x16x16x3xf32>, tensor<1x1x3x8xf32> -> tensor<2x16x16x8xf32>
  %y = nd.transpose %y1 perm [0, 3, 1, 2] : tensor<2x16x16x8xf32> -> tensor<2x8x16x16xf32>
  %s = nd.reduce_sum %y dims [0, 2, 3] : tensor<2x8x16x16xf32> -> tensor<8xf32>
  func.return %s : tensor<8xf32>
}

// -----

// A result that leaves the function channels first, of an input that has its positions side by side: nothing is transposed, positions are
// the columns of the kernel's tile. With short rows of positions, transposing costs less than it saves.
// CHECK-LABEL: func.func @alone
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, (d2 + d5), (d3 + d6))>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>]
// CHECK:         } -> tensor<2x8x16x16xf32>
// CHECK-NOT:     linalg.generic
func.func @alone(%x: tensor<2x3x18x18xf32>, %w: tensor<8x3x3x3xf32>) -> tensor<2x8x16x16xf32> {
  %x1 = nd.transpose %x perm [0, 2, 3, 1] : tensor<2x3x18x18xf32> -> tensor<2x18x18x3xf32>
  %w1 = nd.transpose %w perm [2, 3, 1, 0] : tensor<8x3x3x3xf32> -> tensor<3x3x3x8xf32>
  %y1 = nd.conv_general %x1, %w1 : tensor<2x18x18x3xf32>, tensor<3x3x3x8xf32> -> tensor<2x16x16x8xf32>
  %y = nd.transpose %y1 perm [0, 3, 1, 2] : tensor<2x16x16x8xf32> -> tensor<2x8x16x16xf32>
  func.return %y : tensor<2x8x16x16xf32>
}

// CHECK-LABEL: func.func @short_rows
// CHECK:         } -> tensor<2x4x4x8xf32>
// CHECK:         } -> tensor<2x8x4x4xf32>
func.func @short_rows(%x: tensor<2x3x6x6xf32>, %w: tensor<8x3x3x3xf32>) -> tensor<2x8x4x4xf32> {
  %x1 = nd.transpose %x perm [0, 2, 3, 1] : tensor<2x3x6x6xf32> -> tensor<2x6x6x3xf32>
  %w1 = nd.transpose %w perm [2, 3, 1, 0] : tensor<8x3x3x3xf32> -> tensor<3x3x3x8xf32>
  %y1 = nd.conv_general %x1, %w1 : tensor<2x6x6x3xf32>, tensor<3x3x3x8xf32> -> tensor<2x4x4x8xf32>
  %y = nd.transpose %y1 perm [0, 3, 1, 2] : tensor<2x4x4x8xf32> -> tensor<2x8x4x4xf32>
  func.return %y : tensor<2x8x4x4xf32>
}

// -----

// A barrier holds values as they lie.
// CHECK-LABEL: func.func @barrier
// CHECK:         %z = tensor.cast %y1 {{.*}} : tensor<2x16x16x8xf32> to tensor<2x16x16x8xf32>
// CHECK-NEXT:    func.return %z : tensor<2x16x16x8xf32>
func.func @barrier(%x: tensor<2x16x16x3xf32>, %w: tensor<1x1x3x8xf32>) -> tensor<2x16x16x8xf32> {
  %y1 = nd.conv_general %x, %w : tensor<2x16x16x3xf32>, tensor<1x1x3x8xf32> -> tensor<2x16x16x8xf32>
  %y = nd.transpose %y1 perm [0, 3, 1, 2] : tensor<2x16x16x8xf32> -> tensor<2x8x16x16xf32>
  %z = nd.optimization_barrier %y : tensor<2x8x16x16xf32>
  %z1 = nd.transpose %z perm [0, 2, 3, 1] : tensor<2x8x16x16xf32> -> tensor<2x16x16x8xf32>
  return %z1 : tensor<2x16x16x8xf32>
}

// -----

// A large frame: zeros at its four edges only, then what it holds, which whoever computes it writes there. An argument is written by a kernel
// (a copy on all threads), channels last if there are eight of them or more.
// CHECK-LABEL: func.func @large
// CHECK:         [[E:%.*]] = tensor.empty() : tensor<2x42x42x8xf32>
// CHECK:         [[TOP:%.*]] = tensor.insert_slice {{.*}} into [[E]][0, 0, 0, 0] [2, 1, 42, 8] [1, 1, 1, 1]
// CHECK:         [[BOTTOM:%.*]] = tensor.insert_slice {{.*}} into [[TOP]][0, 41, 0, 0] [2, 1, 42, 8] [1, 1, 1, 1]
// CHECK:         [[LEFT:%.*]] = tensor.insert_slice {{.*}} into [[BOTTOM]][0, 1, 0, 0] [2, 40, 1, 8] [1, 1, 1, 1]
// CHECK:         [[RIGHT:%.*]] = tensor.insert_slice {{.*}} into [[LEFT]][0, 1, 41, 0] [2, 40, 1, 8] [1, 1, 1, 1]
// CHECK:         tensor.insert_slice {{.*}} into [[RIGHT]][0, 1, 1, 0] [2, 40, 40, 8] [1, 1, 1, 1]
func.func @large(%x: tensor<2x8x40x40xf32>, %w: tensor<8x8x3x3xf32>) -> tensor<2x40x40x8xf32> {
  %x1 = nd.transpose %x perm [0, 2, 3, 1] : tensor<2x8x40x40xf32> -> tensor<2x40x40x8xf32>
  %w1 = nd.transpose %w perm [2, 3, 1, 0] : tensor<8x8x3x3xf32> -> tensor<3x3x8x8xf32>
  %y = nd.conv_general %x1, %w1 padding [1, 1, 1, 1] : tensor<2x40x40x8xf32>, tensor<3x3x8x8xf32> -> tensor<2x40x40x8xf32>
  func.return %y : tensor<2x40x40x8xf32>
}

// -----

// Padding puts the image channels last, the result leaves the function channels first: the kernel turns its tiles, no pass over the result.
// CHECK-LABEL: func.func @turned
// CHECK:         tensor.insert_slice {{.*}} : tensor<2x16x16x8xf32> into tensor<2x18x18x8xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, (d2 + d4), (d3 + d5), d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d6, d4, d5)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>]
// CHECK:         linalg.generic {{.*}}ins({{.*}} : tensor<2x8x16x16xf32>)
// CHECK-NOT:     linalg.generic
func.func @turned(%x: tensor<2x8x16x16xf32>, %w: tensor<8x8x3x3xf32>) -> tensor<2x8x16x16xf32> {
  %x1 = nd.transpose %x perm [0, 2, 3, 1] : tensor<2x8x16x16xf32> -> tensor<2x16x16x8xf32>
  %w1 = nd.transpose %w perm [2, 3, 1, 0] : tensor<8x8x3x3xf32> -> tensor<3x3x8x8xf32>
  %y1 = nd.conv_general %x1, %w1 padding [1, 1, 1, 1] : tensor<2x16x16x8xf32>, tensor<3x3x8x8xf32> -> tensor<2x16x16x8xf32>
  %y = nd.transpose %y1 perm [0, 3, 1, 2] : tensor<2x16x16x8xf32> -> tensor<2x8x16x16xf32>
  %z = nd.relu %y : tensor<2x8x16x16xf32>
  func.return %z : tensor<2x8x16x16xf32>
}

// -----

// The gradient of a filter has fewer positions than its window: its channels stay last, the result is put in order once.
// CHECK-LABEL: func.func @filter
// CHECK:         } -> tensor<8x3x3x8xf32>
// CHECK:         } -> tensor<8x8x3x3xf32>
func.func @filter(%x: tensor<8x10x10x8xf32>, %ct: tensor<8x8x8x8xf32>) -> tensor<8x8x3x3xf32> {
  %d = nd.conv_general %x, %ct : tensor<8x10x10x8xf32>, tensor<8x8x8x8xf32> -> tensor<8x3x3x8xf32>
  %y = nd.transpose %d perm [3, 0, 1, 2] : tensor<8x3x3x8xf32> -> tensor<8x8x3x3xf32>
  func.return %y : tensor<8x8x3x3xf32>
}
