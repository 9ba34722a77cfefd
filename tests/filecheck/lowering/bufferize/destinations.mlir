// RUN: gradir-opt %s -p bufferize --split-input-file | filecheck %s
// RUN: gradir-opt %s -p bufferize,plan-memory --split-input-file | filecheck %s --check-prefix=PLAN

// The last kernel writes the output, the one before an arena buffer; the kernel's own temporary is written once. Between them `@exp2`
// writes over its operand, which nobody reads any more: its operands may overlap, and say so.
// CHECK-LABEL: func.func private @exp2(
// CHECK-SAME:    %a: memref<4xf32> {gradir.access = "read", gradir.alias = [1 : i64]}, %d: memref<4xf32> {gradir.access = "write", gradir.alias = [0 : i64]})
// CHECK:         %[[T:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
// CHECK-NEXT:    linalg.generic {{.*}} ins(%a : memref<4xf32>) outs(%[[T]] : memref<4xf32>)
// CHECK:         linalg.generic {{.*}} ins(%[[T]] : memref<4xf32>) outs(%d : memref<4xf32>)
// CHECK:         memref.dealloc %[[T]]
// CHECK-NEXT:    func.return
// CHECK-LABEL: func.func private @rev(
// CHECK-SAME:    %a: memref<4xf32> {gradir.access = "read"}, %d: memref<4xf32> {gradir.access = "write"})
// CHECK-LABEL: func.func @f(%x: memref<4xf32>, %{{.*}}: memref<4xf32>) attributes {gradir.inputs = 1 : i64, gradir.results = 1 : i64}
// CHECK:         %[[Y:.*]] = memref.alloc()
// CHECK-NEXT:    func.call @exp2(%x, %[[Y]])
// CHECK-NEXT:    func.call @exp2(%[[Y]], %[[Y]])
// CHECK-NEXT:    func.call @rev(%[[Y]], %w)
// CHECK-NEXT:    memref.dealloc %[[Y]]
// CHECK-NEXT:    func.return

// PLAN-LABEL: func.func @f(%x: memref<4xf32>, %w: memref<4xf32>, %arena: memref<64xi8>)
// PLAN-SAME:    gradir.arena = 64 : i64
// PLAN-NEXT:    %[[O:.*]] = arith.constant 0 : index
// PLAN-NEXT:    %[[Y:.*]] = memref.view %arena[%[[O]]][] : memref<64xi8> to memref<4xf32>
// PLAN-NEXT:    func.call @exp2(%x, %[[Y]])
// PLAN-NEXT:    func.call @exp2(%[[Y]], %[[Y]])
// PLAN-NEXT:    func.call @rev(%[[Y]], %w)
// PLAN-NEXT:    func.return
#i = affine_map<(i) -> (i)>
func.func private @exp2(%a: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32> attributes {gradir.kernel = #kernel.elementwise<>} {
  %e = tensor.empty() : tensor<4xf32>
  %t = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = math.exp %p : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%t : tensor<4xf32>) outs(%d : tensor<4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = math.exp %p : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func private @rev(%a: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32> attributes {gradir.kernel = #kernel.elementwise<>} {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (3 - i)>, #i], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%d : tensor<4xf32>) {
  ^bb0(%p: f32, %o: f32):
    linalg.yield %p : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e0 = tensor.empty() : tensor<4xf32>
  %y = call @exp2(%x, %e0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %z = call @exp2(%y, %e1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e2 = tensor.empty() : tensor<4xf32>
  %w = call @rev(%z, %e2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

// A concatenation: both pieces are made in the output. An argument and a constant that are returned are copied.
// CHECK: memref.global "private" constant @constant_0 : memref<2xf32> = dense<[1.000000e+00, 2.000000e+00]>
// CHECK-LABEL: func.func private @neg(
// CHECK-SAME:    memref<2xf32, strided<[1], offset: ?>> {gradir.access = "write"}
// CHECK-LABEL: func.func @concat(
// CHECK-SAME:    %x: memref<2xf32>, %[[C:.*]]: memref<4xf32>, %[[A:.*]]: memref<2xf32>, %[[K:.*]]: memref<2xf32>)
// CHECK:         memref.subview %[[C]][0] [2] [1] : memref<4xf32> to memref<2xf32>
// CHECK:         func.call @neg(%x
// CHECK:         memref.subview %[[C]][2] [2] [1] : memref<4xf32> to memref<2xf32, strided<[1], offset: 2>>
// CHECK:         func.call @neg(%x
// CHECK-NOT:     memref.alloc
// CHECK:         %[[G:.*]] = memref.get_global @constant_0 : memref<2xf32>
// CHECK-DAG:     memref.copy %x, %[[A]]
// CHECK-DAG:     memref.copy %[[G]], %[[K]]
#i = affine_map<(i) -> (i)>
func.func private @neg(%a: tensor<2xf32>, %d: tensor<2xf32>) -> tensor<2xf32> attributes {gradir.kernel = #kernel.elementwise<>} {
  %r = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%a : tensor<2xf32>) outs(%d : tensor<2xf32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.negf %p : f32
    linalg.yield %0 : f32
  } -> tensor<2xf32>
  return %r : tensor<2xf32>
}
func.func @concat(%x: tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>, tensor<2xf32>) {
  %e0 = tensor.empty() : tensor<2xf32>
  %p = call @neg(%x, %e0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %e1 = tensor.empty() : tensor<2xf32>
  %q = call @neg(%x, %e1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %e = tensor.empty() : tensor<4xf32>
  %s = tensor.insert_slice %p into %e[0] [2] [1] : tensor<2xf32> into tensor<4xf32>
  %c = tensor.insert_slice %q into %s[2] [2] [1] : tensor<2xf32> into tensor<4xf32>
  %k = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %c, %x, %k : tensor<4xf32>, tensor<2xf32>, tensor<2xf32>
}
