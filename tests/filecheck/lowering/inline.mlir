// RUN: gradir-opt %s -p inline --split-input-file | filecheck %s
// RUN: gradir-opt %s -p inline --split-input-file --mlir-print-debuginfo | filecheck %s --check-prefix=LOC

// Callees first: what @twice got is inlined into @f.
// CHECK-LABEL: func.func @f
// CHECK-NEXT:    %[[A:.*]] = arith.muli %x, %x : i32
// CHECK-NEXT:    %[[B:.*]] = arith.muli %[[A]], %[[A]] : i32
// CHECK-NEXT:    func.return %[[B]] : i32
// LOC-LABEL:   func.func @f
// LOC:           arith.muli {{.*}} loc(callsite("{{.*}}inline.mlir":[[#]]:{{.*}} at
func.func @f(%x: i32) -> i32 {
  %r = call @twice(%x) : (i32) -> i32
  return %r : i32
}
func.func private @twice(%a: i32) -> i32 {
  %b = call @square(%a) : (i32) -> i32
  %c = call @square(%b) : (i32) -> i32
  return %c : i32
}
func.func private @square(%a: i32) -> i32 {
  %b = arith.muli %a, %a : i32
  return %b : i32
}

// -----

// Regions come along; a result may be an argument.
// CHECK-LABEL: func.func @g
// CHECK-NEXT:    %[[R:.*]] = scf.if %c -> (i32) {
// CHECK-NEXT:      %[[S:.*]] = arith.addi %x, %x : i32
// CHECK-NEXT:      scf.yield %[[S]] : i32
// CHECK:         func.return %[[R]], %x : i32, i32
func.func @g(%c: i1, %x: i32) -> (i32, i32) {
  %r, %s = call @choose(%c, %x) : (i1, i32) -> (i32, i32)
  return %r, %s : i32, i32
}
func.func private @choose(%c: i1, %a: i32) -> (i32, i32) {
  %r = scf.if %c -> (i32) {
    %s = arith.addi %a, %a : i32
    scf.yield %s : i32
  } else {
    scf.yield %a : i32
  }
  return %r, %a : i32, i32
}

// -----

// Calls inside of loops too; kernels, functions without a body, functions with control flow between blocks and no_inline stay calls.
// CHECK-LABEL: func.func @h
// CHECK:         scf.for
// CHECK-NEXT:      arith.muli
// CHECK:         call @kernel
// CHECK:         call @declared
// CHECK:         call @blocks
// CHECK:         call @kept
func.func private @kernel(%a: tensor<i32>) -> tensor<i32> attributes {gradir.kernel = #kernel.loops<>} {
  return %a : tensor<i32>
}
func.func private @declared(i32) -> i32
func.func private @blocks(%a: i32) -> i32 {
  cf.br ^e(%a : i32)
^e(%b: i32):
  return %b : i32
}
func.func private @kept(%a: i32) -> i32 attributes {no_inline} {
  return %a : i32
}
func.func private @square(%a: i32) -> i32 {
  %b = arith.muli %a, %a : i32
  return %b : i32
}
func.func @h(%x: i32, %n: index, %t: tensor<i32>) -> (i32, tensor<i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (i32) {
    %b = call @square(%a) : (i32) -> i32
    scf.yield %b : i32
  }
  %1 = call @kernel(%t) : (tensor<i32>) -> tensor<i32>
  %2 = call @declared(%r) : (i32) -> i32
  %3 = call @blocks(%2) : (i32) -> i32
  %4 = call @kept(%3) : (i32) -> i32
  return %4, %1 : i32, tensor<i32>
}
