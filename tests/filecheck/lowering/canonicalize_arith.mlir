// RUN: gradir-opt %s -p canonicalize --split-input-file | filecheck %s

// CHECK-LABEL: func.func @constants
// CHECK-DAG:     %[[A:.*]] = arith.constant -1 : i8
// CHECK-DAG:     %[[B:.*]] = arith.constant 3 : i8
// CHECK-DAG:     %[[C:.*]] = arith.constant -3 : i32
// CHECK-DAG:     %[[D:.*]] = arith.constant -4 : i32
// CHECK-DAG:     %[[E:.*]] = arith.constant -1 : i32
// CHECK-DAG:     %[[F:.*]] = arith.constant true
// CHECK:         func.return %[[A]], %[[B]], %[[C]], %[[D]], %[[E]], %[[F]]
func.func @constants() -> (i8, i8, i32, i32, i32, i1) {
  %i127 = arith.constant 127 : i8
  %i1 = arith.constant 1 : i8
  %im128 = arith.constant -128 : i8
  %sum = arith.addi %i127, %im128 : i8
  %q = arith.divui %i127, %im128 : i8
  %n = arith.addi %q, %i1 : i8
  %w = arith.shrui %im128, %n : i8
  %five = arith.constant 5 : i8
  %s = arith.shrui %i127, %five : i8
  %m7 = arith.constant -7 : i32
  %two = arith.constant 2 : i32
  %div = arith.divsi %m7, %two : i32
  %floor = arith.floordivsi %m7, %two : i32
  %rem = arith.remsi %m7, %two : i32
  %lt = arith.cmpi ult, %two, %m7 : i32
  return %sum, %s, %div, %floor, %rem, %lt : i8, i8, i32, i32, i32, i1
}

// -----

// Division by zero, the one overflowing division and too wide shifts have no value: they stay.
// CHECK-LABEL: func.func @undefined
// CHECK:         arith.divsi
// CHECK:         arith.remui
// CHECK:         arith.divsi
// CHECK:         arith.shli
func.func @undefined() -> (i8, i8, i8, i8) {
  %zero = arith.constant 0 : i8
  %min = arith.constant -128 : i8
  %m1 = arith.constant -1 : i8
  %eight = arith.constant 8 : i8
  %a = arith.divsi %min, %zero : i8
  %b = arith.remui %min, %zero : i8
  %c = arith.divsi %min, %m1 : i8
  %d = arith.shli %m1, %eight : i8
  return %a, %b, %c, %d : i8, i8, i8, i8
}

// -----

// CHECK-LABEL: func.func @identities
// CHECK:         %[[Z:.*]] = arith.constant 0 : index
// CHECK:         %[[Y:.*]] = arith.constant 0 : index
// CHECK-NEXT:    func.return %x, %x, %x, %[[Z]], %[[Y]], %x
func.func @identities(%x: index, %c: i1) -> (index, index, index, index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = arith.addi %c0, %x : index
  %b = arith.muli %x, %c1 : index
  %d = arith.divui %b, %c1 : index
  %e = arith.muli %c0, %x : index
  %f = arith.subi %c0, %e : index
  %g = arith.select %c, %x, %x : index
  return %a, %b, %d, %e, %f, %g : index, index, index, index, index, index
}

// -----

// Offsets gather in one constant, unless one of the sums promises not to overflow.
// CHECK-LABEL: func.func @reassociate
// CHECK-DAG:     %[[C6:.*]] = arith.constant 6 : index
// CHECK-DAG:     %[[S:.*]] = arith.addi %x, %[[C6]] : index
// CHECK:         arith.addi {{.*}} overflow<nsw>
// CHECK:         arith.addi {{.*}} overflow<nsw>
func.func @reassociate(%x: index) -> (index, index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %a = arith.addi %x, %c1 : index
  %b = arith.addi %c2, %a : index
  %d = arith.addi %b, %c3 : index
  %e = arith.addi %x, %c1 overflow<nsw> : index
  %f = arith.addi %e, %c2 overflow<nsw> : index
  return %d, %f : index, index
}

// -----

// Floats: only what holds for -0.0 and NaN too.
// CHECK-LABEL: func.func @floats
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0.0{{.*}} : f32
// CHECK-DAG:     %[[A:.*]] = arith.addf %x, %[[ZERO]] : f32
// CHECK-DAG:     %[[M:.*]] = arith.mulf %x, %[[ZERO]] : f32
// CHECK:         func.return %[[A]], %x, %x, %x, %[[M]], %x
func.func @floats(%x: f32) -> (f32, f32, f32, f32, f32, f32) {
  %zero = arith.constant 0.0 : f32
  %mzero = arith.constant -0.0 : f32
  %one = arith.constant 1.0 : f32
  %a = arith.addf %x, %zero : f32
  %b = arith.addf %mzero, %x : f32
  %c = arith.mulf %one, %x : f32
  %d = arith.subf %x, %zero : f32
  %e = arith.mulf %x, %zero : f32
  %n = arith.negf %x : f32
  %f = arith.negf %n : f32
  return %a, %b, %c, %d, %e, %f : f32, f32, f32, f32, f32, f32
}

// -----

// CHECK-LABEL: func.func @casts
// CHECK-DAG:     %[[A:.*]] = arith.constant -1 : i64
// CHECK-DAG:     %[[B:.*]] = arith.constant 255 : i64
// CHECK-DAG:     %[[C:.*]] = arith.constant 1 : i32
// CHECK-DAG:     %[[N:.*]] = arith.index_cast %i : index to i32
// CHECK-DAG:     %[[M:.*]] = arith.index_cast %[[N]] : i32 to index
// CHECK:         func.return %[[A]], %[[B]], %[[C]], %[[M]], %x
func.func @casts(%i: index, %x: i32) -> (i64, i64, i32, index, i32) {
  %m1 = arith.constant -1 : i8
  %a = arith.extsi %m1 : i8 to i64
  %b = arith.extui %m1 : i8 to i64
  %t = arith.constant true
  %c = arith.extui %t : i1 to i32
  %n = arith.index_cast %i : index to i32
  %m = arith.index_cast %n : i32 to index
  %p = arith.index_cast %x : i32 to index
  %q = arith.index_cast %p : index to i32
  return %a, %b, %c, %m, %q : i64, i64, i32, index, i32
}
