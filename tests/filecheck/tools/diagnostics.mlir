// The shape of a message: place, source line with a caret, the op alone, notes.
// RUN: not gradir-opt %s 2>&1 | filecheck %s
// RUN: not gradir-opt %s -o %t.out 2>/dev/null
// RUN: not ls %t.out

// CHECK:      {{.*}}diagnostics.mlir:[[# @LINE + 9]]:8: error: 'arith.addi' op operand #1 does not dominate this use: defined below this use
// CHECK-NEXT:     %0 = arith.addi %x, %1 : i32
// CHECK-NEXT:          ^
// CHECK-NEXT: {{.*}}diagnostics.mlir:[[# @LINE + 6]]:8: note: see current operation: %0 = "arith.addi"(%x, %1) {{.*}} : (i32, i32) -> i32
// CHECK-NEXT: {{.*}}diagnostics.mlir:[[# @LINE + 6]]:8: note: operand defined here
// CHECK-NEXT:     %1 = scf.if
// CHECK-NEXT:          ^
// CHECK-NOT:  scf.yield
func.func @f(%x: i32, %c: i1) -> i32 {
  %0 = arith.addi %x, %1 : i32
  %1 = scf.if %c -> (i32) {
    scf.yield %x : i32
  } else {
    scf.yield %x : i32
  }
  return %0 : i32
}
