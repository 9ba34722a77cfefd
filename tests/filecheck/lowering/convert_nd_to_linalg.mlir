// RUN: gradir-opt %s -p convert-nd-to-linalg --split-input-file | filecheck %s

// An elementwise op is one loop nest; broadcast and transpose are its index maps; the splat is a constant of the body.
// CHECK-LABEL: func.func @views
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%b, %x : tensor<3xf32>, tensor<3x2xf32>)
// CHECK-NEXT:    ^bb0(%[[B:.*]]: f32, %[[X:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      %[[S:.*]] = arith.addf %[[B]], %[[X]] : f32
// CHECK:         linalg.generic
// CHECK:           %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// CHECK-NEXT:      arith.mulf %{{.*}}, %[[TWO]] : f32
// CHECK-NOT:     linalg.generic
func.func @views(%b: tensor<3xf32>, %x: tensor<3x2xf32>) -> tensor<2x3xf32> {
  %0 = nd.broadcast %b dims [1] : tensor<3xf32> -> tensor<2x3xf32>
  %1 = nd.transpose %x perm [1, 0] : tensor<3x2xf32> -> tensor<2x3xf32>
  %2 = nd.add %0, %1 : tensor<2x3xf32>
  %c = nd.constant splat(2.0 : f32) : tensor<2x3xf32>
  %3 = nd.mul %2, %c : tensor<2x3xf32>
  return %3 : tensor<2x3xf32>
}

// -----

// A reversal is an index map with a negative factor, a counter is linalg.index.
// CHECK-LABEL: func.func @reverse_iota
// CHECK:         affine_map<(d0) -> (((d0 * -1) + 3))>
// CHECK:           %[[I:.*]] = linalg.index 0 : index
// CHECK-NEXT:      arith.index_cast %[[I]] : index to i32
func.func @reverse_iota(%x: tensor<4xi32>) -> tensor<4xi32> {
  %0 = nd.reverse %x dims [0] : tensor<4xi32>
  %1 = nd.iota dim 0 : tensor<4xi32>
  %2 = nd.add %0, %1 : tensor<4xi32>
  return %2 : tensor<4xi32>
}

// -----

// A dot product accumulates from 0; its transpose decides the order in memory, so that nothing is transposed.
// CHECK-LABEL: func.func @dot
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<4x2xf32>
// CHECK:         %[[F:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[E]] : tensor<4x2xf32>)
// CHECK-NEXT:    %[[D:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK:           %[[P:.*]] = arith.mulf
// CHECK-NEXT:      arith.addf %{{.*}}, %[[P]] : f32
// CHECK:         func.return %[[D]] : tensor<4x2xf32>
func.func @dot(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> tensor<4x2xf32> {
  %0 = nd.dot_general %x, %w contract [1] x [0] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
  %1 = nd.transpose %0 perm [1, 0] : tensor<2x4xf32> -> tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}

// -----

// bf16 sums accumulate in f32 and are rounded once.
// CHECK-LABEL: func.func @narrow
// CHECK:         linalg.generic {{.*}} ins(%x : tensor<8xbf16>) outs(%{{.*}} : tensor<f32>)
// CHECK:           arith.extf %{{.*}} : bf16 to f32
// CHECK-NEXT:      arith.addf {{.*}} : f32
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<bf16>)
// CHECK:           arith.truncf %{{.*}} : f32 to bf16
func.func @narrow(%x: tensor<8xbf16>) -> tensor<bf16> {
  %0 = nd.reduce_sum %x dims [0] : tensor<8xbf16> -> tensor<bf16>
  return %0 : tensor<bf16>
}

// -----

// Integer division has no undefined case left.
// CHECK-LABEL: func.func @divide
// CHECK-SAME:    (%x: tensor<4xi8>, %y: tensor<4xi8>) -> tensor<4xi8>
// CHECK:           %[[Z:.*]] = arith.cmpi eq, %[[Y:.*]], %{{.*}} : i8
// CHECK:           %[[SAFE:.*]] = arith.select %[[Z]], %{{.*}}, %[[Y]] : i8
// CHECK:           %[[Q:.*]] = arith.divui %{{.*}}, %[[SAFE]] : i8
// CHECK:           arith.select %[[Z]], %{{.*}}, %[[Q]] : i8
func.func @divide(%x: tensor<4xui8>, %y: tensor<4xui8>) -> tensor<4xui8> {
  %0 = nd.div %x, %y : tensor<4xui8>
  return %0 : tensor<4xui8>
}

// -----

// A convolution pads by insertion, then is one nest with windows as index maps.
// CHECK-LABEL: func.func @convolution
// CHECK:         tensor.insert_slice %x into %{{.*}}[0, 1, 1, 0] [1, 8, 8, 3] [1, 1, 1, 1] : tensor<1x8x8x3xf32> into tensor<1x10x10x3xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, (d1 + d4), (d2 + d5), d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, d5, d6, d3)>
func.func @convolution(%x: tensor<1x8x8x3xf32>, %w: tensor<3x3x3x4xf32>) -> tensor<1x8x8x4xf32> {
  %0 = nd.conv_general %x, %w padding [1, 1, 1, 1] : tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32> -> tensor<1x8x8x4xf32>
  return %0 : tensor<1x8x8x4xf32>
}

// -----

// Windows that do not overlap are dimensions of the operand: a plain reduction without windows in the index.
// CHECK-LABEL: func.func @pool
// CHECK:         %[[S:.*]] = tensor.expand_shape %x
// CHECK-SAME:      into tensor<1x4x2x4x2x3xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d5)>]
func.func @pool(%x: tensor<1x8x8x3xf32>) -> tensor<1x4x4x3xf32> {
  %0 = nd.reduce_window max, %x window [1, 2, 2, 1] strides [1, 2, 2, 1] : tensor<1x8x8x3xf32> -> tensor<1x4x4x3xf32>
  return %0 : tensor<1x4x4x3xf32>
}

// -----

// Splitting a dimension of a transposed value splits the dimension of its base.
// CHECK-LABEL: func.func @heads
// CHECK:         %[[H:.*]] = tensor.expand_shape %x {{.*}} output_shape [5, 2, 4] : tensor<5x8xf32> into tensor<5x2x4xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0, d1)>
func.func @heads(%x: tensor<5x8xf32>) -> tensor<2x4x5xf32> {
  %0 = nd.transpose %x perm [1, 0] : tensor<5x8xf32> -> tensor<8x5xf32>
  %1 = nd.reshape %0 : tensor<8x5xf32> -> tensor<2x4x5xf32>
  %2 = nd.exp %1 : tensor<2x4x5xf32>
  return %2 : tensor<2x4x5xf32>
}

// -----

// Loops keep their shape; slices of what they carry are slices; names of sizes get values.
// CHECK-LABEL: func.func @loop
// CHECK:         scf.for %[[T:.*]] = %{{.*}} to %n step %{{.*}} iter_args(%[[H:.*]] = %h, %[[S:.*]] = %{{.*}}) -> (tensor<4xf32>, tensor<?x4xf32, ["n", ""]>)
// CHECK:           %[[INS:.*]] = tensor.insert_slice %[[H]] into %[[S]][%[[T]], 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32, ["n", ""]>
// CHECK:           linalg.generic
// CHECK:           scf.yield %{{.*}}, %[[INS]]
func.func @loop(%h: tensor<4xf32>, %n: index) -> tensor<?x4xf32, ["n", ""]> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  nd.bind %n as "n"
  %s = nd.empty sizes (%n) : tensor<?x4xf32, ["n", ""]>
  %r, %stack = scf.for %t = %c0 to %n step %c1 iter_args(%p = %h, %q = %s) -> (tensor<4xf32>, tensor<?x4xf32, ["n", ""]>) {
    %u = nd.update_at %p into %q[%t] dim 0 : tensor<4xf32> -> tensor<?x4xf32, ["n", ""]>
    %e = nd.tanh %p : tensor<4xf32>
    scf.yield %e, %u : tensor<4xf32>, tensor<?x4xf32, ["n", ""]>
  }
  return %stack : tensor<?x4xf32, ["n", ""]>
}

// -----

// A gather reads at a clamped index inside the body.
// CHECK-LABEL: func.func @gather
// CHECK:           arith.maxsi
// CHECK:           %[[AT:.*]] = arith.minsi
// CHECK:           tensor.extract %x[%[[AT]], %{{.*}}] : tensor<5x3xf32>
func.func @gather(%x: tensor<5x3xf32>, %i: tensor<2xi32>) -> tensor<2x3xf32> {
  %0 = nd.gather %x, %i dim 0 : tensor<5x3xf32>, tensor<2xi32> -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// A scatter is a template: a private function of loops, shared by equal requests.
// CHECK-LABEL: func.func private @scatter_add_0
// CHECK-SAME:    gradir.kernel = #kernel.template<>
// CHECK:         tensor.insert
// CHECK-NOT:   @scatter_add_1
// CHECK-LABEL: func.func @scatter
// CHECK-COUNT-2: func.call @scatter_add_0
func.func @scatter(%x: tensor<5x3xf32>, %i: tensor<2xi32>, %u: tensor<2x3xf32>) -> tensor<5x3xf32> {
  %0 = nd.scatter_add %x, %i, %u dim 0 : tensor<5x3xf32>, tensor<2xi32>, tensor<2x3xf32> -> tensor<5x3xf32>
  %1 = nd.scatter_add %0, %i, %u dim 0 : tensor<5x3xf32>, tensor<2xi32>, tensor<2x3xf32> -> tensor<5x3xf32>
  return %1 : tensor<5x3xf32>
}
