// RUN: gradir-opt %s -p 'cse,func.func(dce)' --print-ir-after-all -o /dev/null 2>&1 | filecheck %s --check-prefix=ALL
// RUN: gradir-opt %s -p 'cse,dce' --print-ir-after=dce -o /dev/null 2>&1 | filecheck %s --check-prefix=ONE
// RUN: gradir-opt %s -p 'builtin.module(func.func(cse,dce))' | filecheck %s

// ALL:      // -----// IR Dump After cse //----- //
// ALL-NEXT: builtin.module {
// ALL-COUNT-2: arith.addi
// ALL:      // -----// IR Dump After dce ('func.func' operation: @f) //----- //
// ALL-NEXT: func.func @f
// ALL:      // -----// IR Dump After dce ('func.func' operation: @g) //----- //
// ALL-NEXT: func.func @g
// ONE-NOT:  IR Dump After cse
// ONE:      // -----// IR Dump After dce //----- //
// ONE-NOT:  IR Dump

// CHECK-COUNT-1: arith.addi
// CHECK-NOT:     arith.addi
func.func @f(%x: i32) -> i32 {
  %0 = arith.addi %x, %x : i32
  %1 = arith.muli %x, %x : i32
  return %0 : i32
}
func.func @g(%x: i32) {
  %0 = arith.addi %x, %x : i32
  return
}
