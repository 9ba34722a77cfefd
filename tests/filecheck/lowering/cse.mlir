// RUN: gradir-opt %s -p cse --split-input-file | filecheck %s

// CHECK-LABEL: func.func @equal_ops
// CHECK-NEXT:    %[[A:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:    %[[M:.*]] = arith.muli %[[A]], %[[A]] : i32
// CHECK-NEXT:    func.return %[[M]] : i32
func.func @equal_ops(%x: i32, %y: i32) -> i32 {
  %a = arith.addi %x, %y : i32
  %b = arith.addi %y, %x : i32
  %m = arith.muli %a, %b : i32
  return %m : i32
}

// -----

// An attribute or a result type that differs keeps two ops apart.
// CHECK-LABEL: func.func @different
// CHECK-COUNT-2: arith.cmpi
// CHECK-COUNT-2: arith.extsi
func.func @different(%x: i32, %y: i32) -> (i1, i1, i64, i48) {
  %a = arith.cmpi slt, %x, %y : i32
  %b = arith.cmpi sgt, %x, %y : i32
  %c = arith.extsi %x : i32 to i64
  %d = arith.extsi %x : i32 to i48
  return %a, %b, %c, %d : i1, i1, i64, i48
}

// -----

// linalg on tensors is a value: two ops with equal bodies on different empty destinations merge, the destinations do not.
// CHECK-LABEL: func.func @structured
// CHECK:         %[[E:.*]] = tensor.empty
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} outs(%[[E]]
// CHECK-NOT:     linalg.generic
// CHECK:         func.return %[[R]], %[[R]]
#id = affine_map<(i) -> (i)>
func.func @structured(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.mulf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %f = tensor.empty() : tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%b: f32, %p: f32):
    %u = arith.mulf %b, %b : f32
    linalg.yield %u : f32
  } -> tensor<4xf32>
  return %r, %s : tensor<4xf32>, tensor<4xf32>
}

// -----

// Two destinations that stay in use stay two: writing into one must not disturb the other.
// CHECK-LABEL: func.func @destinations
// CHECK-COUNT-2: tensor.empty
func.func @destinations() -> (tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %f = tensor.empty() : tensor<4xf32>
  return %e, %f : tensor<4xf32>, tensor<4xf32>
}

// -----

// What one branch computes is not available in the other, what stands before the branch is available in both.
// CHECK-LABEL: func.func @scopes
// CHECK:         %[[A:.*]] = arith.addi
// CHECK:         scf.if
// CHECK-NEXT:      %[[M:.*]] = arith.muli
// CHECK-NEXT:      arith.subi %[[A]], %[[M]]
// CHECK:         } else {
// CHECK-NEXT:      %[[N:.*]] = arith.muli
// CHECK-NEXT:      arith.subi %[[N]], %[[A]]
func.func @scopes(%c: i1, %x: i32) -> i32 {
  %a = arith.addi %x, %x : i32
  %r = scf.if %c -> (i32) {
    %b = arith.addi %x, %x : i32
    %m = arith.muli %x, %x : i32
    %s = arith.subi %b, %m : i32
    scf.yield %s : i32
  } else {
    %b = arith.addi %x, %x : i32
    %m = arith.muli %x, %x : i32
    %s = arith.subi %m, %b : i32
    scf.yield %s : i32
  }
  %t = arith.addi %r, %a : i32
  return %t : i32
}

// -----

// Calls of functions without effects are values; a store is not.
// CHECK-LABEL: func.func @calls
// CHECK:         %[[V:.*]] = func.call @pure
// CHECK-NEXT:    func.call @stores
// CHECK-NEXT:    func.call @stores
// CHECK-NEXT:    arith.addi %[[V]], %[[V]]
func.func private @pure(%x: i32) -> i32 {
  %0 = arith.muli %x, %x : i32
  return %0 : i32
}
func.func private @stores(%x: i32, %m: memref<i32>) -> i32 {
  memref.store %x, %m[] : memref<i32>
  return %x : i32
}
func.func @calls(%x: i32, %m: memref<i32>) -> i32 {
  %a = call @pure(%x) : (i32) -> i32
  %b = call @pure(%x) : (i32) -> i32
  %c = call @stores(%x, %m) : (i32, memref<i32>) -> i32
  %d = call @stores(%x, %m) : (i32, memref<i32>) -> i32
  %s = arith.addi %a, %b : i32
  %t = arith.addi %c, %d : i32
  %u = arith.addi %s, %t : i32
  return %u : i32
}

// -----

// Blocks: dominance decides.
// CHECK-LABEL: func.func @blocks
// CHECK:         %[[A:.*]] = arith.addi
// CHECK:         cf.cond_br
// CHECK:       ^[[L:.*]]:
// CHECK-NEXT:    %[[M:.*]] = arith.muli
// CHECK-NEXT:    cf.br ^[[E:[a-z]+]](%[[M]]
// CHECK:         %[[N:.*]] = arith.muli
// CHECK:       ^[[E]](
// CHECK:         arith.addi %{{.*}}, %[[A]]
func.func @blocks(%c: i1, %x: i32) -> i32 {
  %a = arith.addi %x, %x : i32
  cf.cond_br %c, ^l, ^r
^l:
  %m = arith.muli %x, %x : i32
  cf.br ^e(%m : i32)
^r:
  %n = arith.muli %x, %x : i32
  cf.br ^e(%n : i32)
^e(%v: i32):
  %b = arith.addi %x, %x : i32
  %t = arith.addi %v, %b : i32
  return %t : i32
}
