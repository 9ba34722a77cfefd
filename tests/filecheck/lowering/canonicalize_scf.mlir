// RUN: gradir-opt %s -p canonicalize --split-input-file | filecheck %s

// CHECK-LABEL: func.func @known_branch
// CHECK-NEXT:    %[[Y:.*]] = arith.addi %x, %x : i32
// CHECK-NEXT:    func.return %[[Y]], %x : i32, i32
func.func @known_branch(%x: i32) -> (i32, i32) {
  %true = arith.constant true
  %false = arith.constant false
  %a = scf.if %true -> (i32) {
    %y = arith.addi %x, %x : i32
    scf.yield %y : i32
  } else {
    scf.yield %x : i32
  }
  %b = scf.if %false -> (i32) {
    scf.yield %a : i32
  } else {
    scf.yield %x : i32
  }
  scf.if %false {
    cf.assert %false, "never"
  }
  return %a, %b : i32, i32
}

// -----

// A result that both branches take from outside, and one that nobody uses.
// CHECK-LABEL: func.func @branch_results
// CHECK-NEXT:    %[[R:.*]] = scf.if %c -> (i32) {
// CHECK-NEXT:      %[[M:.*]] = arith.muli
// CHECK-NEXT:      scf.yield %[[M]] : i32
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %x : i32
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %x, %[[R]] : i32, i32
func.func @branch_results(%c: i1, %x: i32) -> (i32, i32) {
  %a, %b, %d = scf.if %c -> (i32, i32, i32) {
    %m = arith.muli %x, %x : i32
    %n = arith.addi %x, %x : i32
    scf.yield %x, %m, %n : i32, i32, i32
  } else {
    scf.yield %x, %x, %x : i32, i32, i32
  }
  return %a, %b : i32, i32
}

// -----

// CHECK-LABEL: func.func @trips
// CHECK-NEXT:    %[[C5:.*]] = arith.constant 5 : index
// CHECK-NEXT:    %[[S:.*]] = arith.addi %x, %[[C5]] : index
// CHECK-NEXT:    func.return %x, %[[S]], %x : index, index, index
func.func @trips(%x: index) -> (index, index, index) {
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %zero = scf.for %i = %c5 to %c3 step %c3 iter_args(%a = %x) -> (index) {
    %s = arith.addi %a, %i : index
    scf.yield %s : index
  }
  %one = scf.for %i = %c5 to %c6 step %c3 iter_args(%a = %x) -> (index) {
    %s = arith.addi %a, %i : index
    scf.yield %s : index
  }
  %none = scf.for %i = %x to %x step %c3 iter_args(%a = %x) -> (index) {
    %s = arith.addi %a, %i : index
    scf.yield %s : index
  }
  return %zero, %one, %none : index, index, index
}

// -----

// Two trips are a loop: nothing is unrolled.
// CHECK-LABEL: func.func @two_trips
// CHECK:         scf.for
func.func @two_trips(%x: index) -> index {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %x) -> (index) {
    %s = arith.muli %a, %i : index
    scf.yield %s : index
  }
  return %r : index
}

// -----

// Carried: %inv never changes, %dead and %feeds only feed each other, %live needs %helper.
// CHECK-LABEL: func.func @carried
// CHECK:         %[[L:.*]], %[[H:.*]] = scf.for {{.*}} iter_args(%b = %x, %h = %x)
// CHECK-NEXT:      %[[B2:.*]] = arith.addi %b, %h
// CHECK-NEXT:      %[[H2:.*]] = arith.muli %h, %x
// CHECK-NEXT:      scf.yield %[[B2]], %[[H2]]
// CHECK:         func.return %x, %[[L]]
// CHECK-LABEL: func.func @end
func.func @carried(%x: i32, %n: index) -> (i32, i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %inv, %live, %dead, %feeds, %helper = scf.for %i = %c0 to %n step %c1
      iter_args(%a = %x, %b = %x, %d = %x, %e = %x, %h = %x) -> (i32, i32, i32, i32, i32) {
    %b2 = arith.addi %b, %h : i32
    %d2 = arith.addi %d, %e : i32
    %e2 = arith.muli %e, %d : i32
    %h2 = arith.muli %h, %a : i32
    scf.yield %a, %b2, %d2, %e2, %h2 : i32, i32, i32, i32, i32
  }
  return %inv, %live : i32, i32
}
func.func @end() {
  return
}

// -----

// A carried value that reaches a store is needed although its result is not used.
// CHECK-LABEL: func.func @stored
// CHECK:         scf.for {{.*}} iter_args(%[[A:.*]] = %x)
// CHECK:           memref.store %[[A]]
func.func @stored(%x: i32, %n: index, %m: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (i32) {
    memref.store %a, %m[%i] : memref<?xi32>
    %b = arith.muli %a, %x : i32
    scf.yield %b : i32
  }
  return
}

// -----

// CHECK-LABEL: func.func @while_false
// CHECK-NEXT:    %[[B:.*]] = arith.muli %x, %x : i32
// CHECK-NEXT:    func.return %[[B]] : i32
func.func @while_false(%x: i32) -> i32 {
  %r = scf.while (%a = %x) : (i32) -> i32 {
    %b = arith.muli %a, %a : i32
    %false = arith.constant false
    scf.condition(%false) %b : i32
  } do {
  ^bb0(%c: i32):
    scf.yield %c : i32
  }
  return %r : i32
}

// -----

// CHECK-LABEL: func.func @switch
// CHECK-NEXT:    %[[M:.*]] = arith.muli
// CHECK-NEXT:    func.return %[[M]], %x
func.func @switch(%x: i32) -> (i32, i32) {
  %c2 = arith.constant 2 : index
  %c7 = arith.constant 7 : index
  %a = scf.index_switch %c2 -> i32
  case 2 {
    %m = arith.muli %x, %x : i32
    scf.yield %m : i32
  }
  default {
    scf.yield %x : i32
  }
  %b = scf.index_switch %c7 -> i32
  case 2 {
    %m = arith.muli %x, %x : i32
    scf.yield %m : i32
  }
  default {
    scf.yield %x : i32
  }
  return %a, %b : i32, i32
}
