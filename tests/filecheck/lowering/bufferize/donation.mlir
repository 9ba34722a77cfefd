// RUN: gradir-opt %s -p bufferize | filecheck %s
// RUN: gradir-opt %s -p bufferize,plan-memory --check-semantics -o /dev/null
// RUN: gradir-opt %s -p order-kernels | filecheck %s --check-prefix=ORDER

// The update of %p is written over %p; the kernel says that its operands overlap. %q has no result of its type. The row is written into the
// cache without a copy.
// CHECK-LABEL: func.func private @step(
// CHECK-SAME:    %a: memref<4xf32> {gradir.access = "read", gradir.alias = [2 : i64]}
// CHECK-LABEL: func.func @f(%p: memref<4xf32>, %g: memref<4xf32>, %q: memref<5xf32>, %c: memref<8x4xf32>, %i: index,
// CHECK-SAME:    %[[P:.*]]: memref<4xf32>, %[[C:.*]]: memref<8x4xf32>)
// CHECK-SAME:    gradir.aliases = array<i64: 0, 0, 3, 1>
// CHECK-SAME:    gradir.donation = ["p: result 0", "q: kept, no result is tensor<5xf32>", "c: result 1"]
// CHECK:         %[[ROW:.*]] = memref.subview %[[C]][%i, 0] [1, 4] [1, 1]
// CHECK:         memref.copy %p, %[[ROW]]
// CHECK-NOT:     memref.copy
// CHECK:         func.call @step(%p, %g, %[[P]])
// CHECK-NOT:     memref.copy

// Readers of an argument that was given away come before what is written over it.
// ORDER-LABEL: func.func @late(
// ORDER:         %[[R:.*]] = func.call @step(%g, %p,
// ORDER:         %[[S:.*]] = func.call @step(%p, %g,
// ORDER:         func.return %[[S]], %[[R]]
#i = affine_map<(i) -> (i)>
func.func private @step(%a: tensor<4xf32>, %b: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32> attributes {gradir.kernel = #kernel.elementwise<>} {
  %r = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel"]} ins(%a, %b : tensor<4xf32>, tensor<4xf32>) outs(%d : tensor<4xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.subf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @f(%p: tensor<4xf32>, %g: tensor<4xf32>, %q: tensor<5xf32>, %c: tensor<8x4xf32>, %i: index) -> (tensor<4xf32>, tensor<8x4xf32>)
    attributes {gradir.donated = array<i64: 0, 2, 3>} {
  %w = tensor.insert_slice %p into %c[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<8x4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %r = call @step(%p, %g, %e) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r, %w : tensor<4xf32>, tensor<8x4xf32>
}
func.func @late(%p: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {gradir.donated = array<i64: 0>} {
  %e = tensor.empty() : tensor<4xf32>
  %s = call @step(%p, %g, %e) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %r = call @step(%g, %p, %e1) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %s, %r : tensor<4xf32>, tensor<4xf32>
}
