// RUN: gradir-opt %s -p convert-nd-to-linalg,fuse,outline-kernels --split-input-file | filecheck %s

// Destination passing: inputs, the lifted constant, one destination per result. Equal groups share a kernel.
// CHECK-LABEL: func.func private @elementwise_0
// CHECK-SAME:    (%x: tensor<4xf32>, %[[C:.*]]: f32, %[[OUT:.*]]: tensor<4xf32>) -> tensor<4xf32> attributes {gradir.kernel = #kernel.elementwise<>}
// CHECK-NEXT:    %[[R:.*]] = linalg.generic {{.*}} ins(%x : tensor<4xf32>) outs(%[[OUT]] : tensor<4xf32>) {
// CHECK:           arith.mulf %{{.*}}, %[[C]] : f32
// CHECK:         func.return %[[R]] : tensor<4xf32>
// CHECK-NOT:   func.func private
// CHECK-LABEL: func.func @scale
// CHECK:         %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-NEXT:    %[[E:.*]] = tensor.empty() : tensor<4xf32>
// CHECK-NEXT:    func.call @elementwise_0(%x, %[[HALF]], %[[E]])
// CHECK:         %[[THREE:.*]] = arith.constant 3.000000e+00 : f32
// CHECK:         func.call @elementwise_0(%x, %[[THREE]], %{{.*}})
func.func @scale(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = nd.constant splat(0.5 : f32) : tensor<4xf32>
  %d = nd.constant splat(3.0 : f32) : tensor<4xf32>
  %0 = nd.mul %x, %c : tensor<4xf32>
  %1 = nd.mul %x, %d : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Kernels over other names of sizes are the same; tensor.cast changes the name at the call.
// CHECK-LABEL: func.func private @elementwise_0
// CHECK-NOT:   func.func private
// CHECK-LABEL: func.func @sizes
// CHECK:         func.call @elementwise_0(%x,
// CHECK:         %[[Y:.*]] = tensor.cast %y : tensor<?xf32, ["t"]> to tensor<?xf32, ["b"]>
// CHECK:         %[[R:.*]] = func.call @elementwise_0(%[[Y]],
// CHECK-NEXT:    tensor.cast %[[R]] : tensor<?xf32, ["b"]> to tensor<?xf32, ["t"]>
func.func @sizes(%x: tensor<?xf32, ["b"]>, %y: tensor<?xf32, ["t"]>) -> (tensor<?xf32, ["b"]>, tensor<?xf32, ["t"]>) {
  %0 = nd.exp %x : tensor<?xf32, ["b"]>
  %1 = nd.exp %y : tensor<?xf32, ["t"]>
  return %0, %1 : tensor<?xf32, ["b"]>, tensor<?xf32, ["t"]>
}

// -----

// Kernels inside a loop; the accumulation into the carried tensor is the epilogue of the product.
// CHECK-LABEL: func.func private @contraction_0
// CHECK-SAME:    gradir.kernel = #kernel.contraction<>
// CHECK-LABEL: func.func @accumulate
// CHECK:         scf.for
// CHECK-SAME:      iter_args(%[[A:.*]] = %a)
// CHECK:           %[[N:.*]] = func.call @contraction_0(%x, %w, %[[A]], %{{.*}})
// CHECK-NEXT:      scf.yield %[[N]]
func.func @accumulate(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>, %a: tensor<4x4xf32>, %n: index) -> tensor<4x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%p = %a) -> (tensor<4x4xf32>) {
    %d = nd.dot_general %x, %w contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %s = nd.add %p, %d : tensor<4x4xf32>
    scf.yield %s : tensor<4x4xf32>
  }
  return %r : tensor<4x4xf32>
}
