// RUN: gradir-opt %s -p bufferize --split-input-file | filecheck %s

// An accumulator is updated in the output, and the kernel learns that two of its operands are the same memory.
// CHECK-LABEL: func.func private @half_sum(
// CHECK-SAME:    %a: memref<4xf32> {gradir.access = "read"}
// CHECK-SAME:    %b: memref<4xf32> {gradir.access = "read", gradir.alias = [2 : i64]}
// CHECK-SAME:    %d: memref<4xf32> {gradir.access = "write", gradir.alias = [1 : i64]}
// CHECK-LABEL: func.func @accumulate(
// CHECK-SAME:    %x: memref<4xf32>, %y: memref<4xf32>, %[[OUT:.*]]: memref<4xf32>)
// CHECK:         memref.copy %y, %[[OUT]]
// CHECK-NEXT:    scf.for %i = %c0 to %c5 step %c1 {
// CHECK-NEXT:      func.call @half_sum(%x, %[[OUT]], %[[OUT]])
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
#i = affine_map<(i) -> (i)>
func.func private @half_sum(%a: tensor<4xf32>, %b: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32>
    attributes {gradir.kernel = #kernel.elementwise<>} {
  %half = arith.constant 0.5 : f32
  %r = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<4xf32>, tensor<4xf32>) outs(%d : tensor<4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    %1 = arith.mulf %0, %half : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @accumulate(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%acc = %y) -> (tensor<4xf32>) {
    %e = tensor.empty() : tensor<4xf32>
    %s = func.call @half_sum(%x, %acc, %e) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// A recurrence that saves its states: the state is a pointer into the stack, which is the output. The kernel reverses what it reads,
// so it could not run in place; consecutive slices do not overlap, so nothing aliases.
// CHECK-LABEL: func.func private @reverse(
// CHECK-NOT:     gradir.alias
// CHECK-LABEL: func.func @states(
// CHECK-SAME:    %x: memref<4xf32>, %[[OUT:.*]]: memref<5x4xf32>)
// CHECK:         %[[P:.*]] = memref.cast %x
// CHECK-NEXT:    scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %[[P]])
// CHECK-NEXT:      %[[SLOT:.*]] = memref.subview %[[OUT]][%i, 0] [1, 4] [1, 1]
// CHECK-NEXT:      func.call @reverse(%h, %[[SLOT]])
// CHECK-NEXT:      scf.yield %[[SLOT]]
// CHECK-NOT:     memref.alloc
// CHECK-NOT:     memref.copy
#i = affine_map<(i) -> (i)>
#r = affine_map<(i) -> (3 - i)>
func.func private @reverse(%a: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32> attributes {gradir.kernel = #kernel.elementwise<>} {
  %r = linalg.generic {indexing_maps = [#r, #i], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%d : tensor<4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.negf %p : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @states(%x: tensor<4xf32>) -> tensor<5x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %e = tensor.empty() : tensor<5x4xf32>
  %last, %all = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %x, %s = %e) -> (tensor<4xf32>, tensor<5x4xf32>) {
    %e1 = tensor.empty() : tensor<4xf32>
    %n = func.call @reverse(%h, %e1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %t = tensor.insert_slice %n into %s[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<5x4xf32>
    scf.yield %n, %t : tensor<4xf32>, tensor<5x4xf32>
  }
  return %all : tensor<5x4xf32>
}

// -----

// Three pointers: the initial value is read where it is and never written.
// CHECK-LABEL: func.func @rotate(
// CHECK-SAME:    %x: memref<4xf32>, %[[OUT:.*]]: memref<4xf32>)
// CHECK:         %[[A:.*]] = memref.alloc()
// CHECK-NEXT:    %[[B:.*]] = memref.alloc()
// CHECK-NEXT:    %[[R:.*]], %{{.*}}, %{{.*}} = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %x, %[[NEXT:.*]] = %[[A]], %[[OTHER:.*]] = %[[B]])
// CHECK-NEXT:      func.call @reverse(%h, %[[NEXT]])
// CHECK-NEXT:      scf.yield %[[NEXT]], %[[OTHER]], %[[NEXT]]
// CHECK:         memref.copy %[[R]], %[[OUT]]
#i = affine_map<(i) -> (i)>
#r = affine_map<(i) -> (3 - i)>
func.func private @reverse(%a: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32> attributes {gradir.kernel = #kernel.elementwise<>} {
  %r = linalg.generic {indexing_maps = [#r, #i], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%d : tensor<4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.negf %p : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @rotate(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %last = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %x) -> (tensor<4xf32>) {
    %e1 = tensor.empty() : tensor<4xf32>
    %n = func.call @reverse(%h, %e1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %last : tensor<4xf32>
}

// -----

// A swap carries pointers; branches write one destination.
// CHECK-LABEL: func.func @swap(
// CHECK-SAME:    %x: memref<4xf32>, %y: memref<4xf32>, %c: i1, %[[OUT:.*]]: memref<4xf32>)
// CHECK:         %[[R:.*]], %{{.*}} = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %x, %b = %y)
// CHECK-NEXT:      scf.yield %b, %a
// CHECK:         scf.if %c {
// CHECK-NEXT:      memref.copy %[[R]], %[[OUT]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      memref.copy %y, %[[OUT]]
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
func.func @swap(%x: tensor<4xf32>, %y: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %p, %q = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %x, %b = %y) -> (tensor<4xf32>, tensor<4xf32>) {
    scf.yield %b, %a : tensor<4xf32>, tensor<4xf32>
  }
  %r = scf.if %c -> (tensor<4xf32>) {
    scf.yield %p : tensor<4xf32>
  } else {
    scf.yield %y : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
