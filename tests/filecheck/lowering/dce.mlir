// RUN: gradir-opt %s -p dce --split-input-file | filecheck %s

// A chain goes in one run; what a region uses stays.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT:    %[[U:.*]] = arith.muli
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      arith.addi %[[U]]
// CHECK-NOT:     arith.subi
func.func @chain(%c: i1, %x: i32) -> i32 {
  %a = arith.subi %x, %x : i32
  %b = arith.subi %a, %x : i32
  %u = arith.muli %x, %x : i32
  %r = scf.if %c -> (i32) {
    %d = arith.subi %u, %x : i32
    %t = arith.addi %u, %x : i32
    scf.yield %t : i32
  } else {
    scf.yield %x : i32
  }
  return %r : i32
}

// -----

// linalg on tensors goes, on memrefs it writes and stays; a load that nobody uses goes, a store stays.
// CHECK-LABEL: func.func @memory
// CHECK-NEXT:    linalg.fill
// CHECK-NEXT:    memref.store
// CHECK-NEXT:    func.return
func.func @memory(%s: f32, %m: memref<4xf32>, %i: index) {
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%s : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  linalg.fill ins(%s : f32) outs(%m : memref<4xf32>)
  %l = memref.load %m[%i] : memref<4xf32>
  memref.store %s, %m[%i] : memref<4xf32>
  return
}

// -----

// A whole loop whose result nobody uses goes, one that stores stays.
// CHECK-LABEL: func.func @loops
// CHECK-COUNT-1: scf.for
// CHECK-NOT:     scf.for
func.func @loops(%n: index, %m: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0) -> (index) {
    %s = arith.addi %a, %i : index
    scf.yield %s : index
  }
  scf.for %i = %c0 to %n step %c1 {
    memref.store %i, %m[%i] : memref<?xindex>
  }
  return
}

// -----

// A call is as pure as its callee; what is not in the module may do anything.
// CHECK-LABEL: func.func @calls
// CHECK-NEXT:    func.call @unknown
// CHECK-NEXT:    func.return
func.func private @pure(%x: i32) -> i32 {
  return %x : i32
}
func.func private @unknown(i32) -> i32
func.func @calls(%x: i32) {
  %a = call @pure(%x) : (i32) -> i32
  %b = call @unknown(%x) : (i32) -> i32
  return
}

// -----

// An assertion stays, and so does what it asserts.
// CHECK-LABEL: func.func @effects
// CHECK-NEXT:    %[[C:.*]] = arith.cmpi
// CHECK-NEXT:    cf.assert %[[C]]
func.func @effects(%x: i32) {
  %c = arith.cmpi slt, %x, %x : i32
  cf.assert %c, "x < x"
  return
}

// -----

// Code that control never reaches.
// CHECK-LABEL: func.func @unreachable
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @unreachable(%x: i32) {
  return
^a:
  %y = arith.addi %x, %z : i32
  cf.br ^b
^b:
  %z = arith.addi %x, %y : i32
  cf.br ^a
}
