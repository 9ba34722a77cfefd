// RUN: gradir-opt %s -p nd-simplify | filecheck %s

// A scale per output channel of a convolution with constant weights, behind a transpose, moves into the weights (fastmath only).
// CHECK-LABEL: func.func @batch_norm(
// CHECK-NEXT:    %[[W:.*]] = nd.constant dense<{{.*}}3.000000e+00, 8.000000e+00{{.*}}> : tensor<1x1x2x2xf32>
// CHECK-NEXT:    %[[C:.*]] = nd.conv_general %x, %[[W]] : tensor<1x4x4x2xf32>, tensor<1x1x2x2xf32> -> tensor<1x4x4x2xf32>
// CHECK-NEXT:    %[[T:.*]] = nd.transpose %[[C]] perm [0, 3, 1, 2]
// CHECK-NEXT:    %[[S:.*]] = nd.constant dense<[5.0{{.*}}, 6.0{{.*}}]>
// CHECK-NEXT:    %[[B:.*]] = nd.broadcast %[[S]] dims [1]
// CHECK-NEXT:    nd.add %[[T]], %[[B]]
func.func @batch_norm(%x: tensor<1x4x4x2xf32>) -> tensor<1x2x4x4xf32> attributes {gradir.fastmath = "fast"} {
  %w = nd.constant dense<[[[[1.0, 2.0], [3.0, 4.0]]]]> : tensor<1x1x2x2xf32>
  %c = nd.conv_general %x, %w : tensor<1x4x4x2xf32>, tensor<1x1x2x2xf32> -> tensor<1x4x4x2xf32>
  %t = nd.transpose %c perm [0, 3, 1, 2] : tensor<1x4x4x2xf32> -> tensor<1x2x4x4xf32>
  %s = nd.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %sb = nd.broadcast %s dims [1] : tensor<2xf32> -> tensor<1x2x4x4xf32>
  %m = nd.mul %t, %sb : tensor<1x2x4x4xf32>
  %d = nd.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %db = nd.broadcast %d dims [1] : tensor<2xf32> -> tensor<1x2x4x4xf32>
  %a = nd.add %m, %db : tensor<1x2x4x4xf32>
  func.return %a : tensor<1x2x4x4xf32>
}

// Columns of a product, rows of one whose left factor is constant, one number for all.
// CHECK-LABEL: func.func @products(
// CHECK-DAG:     nd.constant dense<{{\[\[}}1.000000e+01, 2.000000e+02], [3.000000e+01, 4.000000e+02]]>
// CHECK-DAG:     nd.constant dense<{{\[\[}}1.000000e+01, 2.000000e+01], [3.000000e+02, 4.000000e+02]]>
// CHECK-DAG:     nd.constant dense<{{\[\[}}5.000000e-01, 1.000000e+00], [1.500000e+00, 2.000000e+00]]>
// CHECK-NOT:     nd.mul
// CHECK:         func.return
func.func @products(%x: tensor<9x2xf32>) -> (tensor<9x2xf32>, tensor<2x9xf32>, tensor<9x2xf32>) attributes {gradir.fastmath = "fast"} {
  %w = nd.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %w1 = nd.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %w2 = nd.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = nd.constant dense<[10.0, 100.0]> : tensor<2xf32>
  %half = nd.constant splat(0.5 : f32) : tensor<9x2xf32>
  %p = nd.dot_general %x, %w contract [1] x [0] : tensor<9x2xf32>, tensor<2x2xf32> -> tensor<9x2xf32>
  %columns = nd.broadcast %s dims [1] : tensor<2xf32> -> tensor<9x2xf32>
  %0 = nd.mul %p, %columns : tensor<9x2xf32>
  %q = nd.dot_general %w1, %x contract [1] x [1] : tensor<2x2xf32>, tensor<9x2xf32> -> tensor<2x9xf32>
  %rows = nd.broadcast %s dims [0] : tensor<2xf32> -> tensor<2x9xf32>
  %1 = nd.mul %rows, %q : tensor<2x9xf32>
  %r = nd.dot_general %x, %w2 contract [1] x [0] : tensor<9x2xf32>, tensor<2x2xf32> -> tensor<9x2xf32>
  %2 = nd.mul %r, %half : tensor<9x2xf32>
  func.return %0, %1, %2 : tensor<9x2xf32>, tensor<2x9xf32>, tensor<9x2xf32>
}

// Not without the permission, not where the product is read elsewhere too, not a scale along rows of x, not an infinite one.
// CHECK-LABEL: func.func @kept(
// CHECK:         nd.mul
// CHECK-LABEL: func.func @kept_too(
// CHECK-COUNT-3: nd.mul
func.func @kept(%x: tensor<9x2xf32>) -> tensor<9x2xf32> {
  %w = nd.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %half = nd.constant splat(0.5 : f32) : tensor<9x2xf32>
  %p = nd.dot_general %x, %w contract [1] x [0] : tensor<9x2xf32>, tensor<2x2xf32> -> tensor<9x2xf32>
  %0 = nd.mul %p, %half : tensor<9x2xf32>
  func.return %0 : tensor<9x2xf32>
}
func.func @kept_too(%x: tensor<9x2xf32>) -> (tensor<9x2xf32>, tensor<9x2xf32>, tensor<9x2xf32>, tensor<9x2xf32>)
    attributes {gradir.fastmath = "fast"} {
  %w = nd.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %w1 = nd.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %w2 = nd.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = nd.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]> : tensor<9xf32>
  %half = nd.constant splat(0.5 : f32) : tensor<9x2xf32>
  %infinite = nd.constant splat(0x7F800000 : f32) : tensor<9x2xf32>
  %p = nd.dot_general %x, %w contract [1] x [0] : tensor<9x2xf32>, tensor<2x2xf32> -> tensor<9x2xf32>
  %0 = nd.mul %p, %half : tensor<9x2xf32>
  %q = nd.dot_general %x, %w1 contract [1] x [0] : tensor<9x2xf32>, tensor<2x2xf32> -> tensor<9x2xf32>
  %rows = nd.broadcast %s dims [0] : tensor<9xf32> -> tensor<9x2xf32>
  %1 = nd.mul %rows, %q : tensor<9x2xf32>
  %r = nd.dot_general %x, %w2 contract [1] x [0] : tensor<9x2xf32>, tensor<2x2xf32> -> tensor<9x2xf32>
  %2 = nd.mul %r, %infinite : tensor<9x2xf32>
  func.return %p, %0, %1, %2 : tensor<9x2xf32>, tensor<9x2xf32>, tensor<9x2xf32>, tensor<9x2xf32>
}

// A large constant that nobody else reads is turned while compiling.
// CHECK-LABEL: func.func @turned(
// CHECK-NEXT:    nd.constant resource({{.*}}) : tensor<4x5xf32>
// CHECK-NEXT:    return
func.func @turned() -> tensor<4x5xf32> {
  %w = nd.constant dense<[[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 5.0]]> : tensor<5x4xf32>
  %t = nd.transpose %w perm [1, 0] : tensor<5x4xf32> -> tensor<4x5xf32>
  func.return %t : tensor<4x5xf32>
}
