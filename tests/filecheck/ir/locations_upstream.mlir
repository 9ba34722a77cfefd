// REQUIRES: mlir-opt
// RUN: gradir-opt %s --mlir-print-debuginfo | mlir-opt --mlir-print-debuginfo | gradir-opt - --mlir-print-debuginfo | filecheck %s

// What mlir-opt prints (aliases below their uses) reads back with the same locations.
// CHECK:       arith.addi {{.*}} loc("{{.*}}locations_upstream.mlir":[[# @LINE + 2]]:8)
func.func @f(%x: i32) -> i32 {
  %0 = arith.addi %x, %x : i32
  // CHECK: arith.muli {{.*}} loc(callsite("a.py":1:2 at fused["b.py":3:4, "c.py":5:6]))
  %1 = arith.muli %0, %0 : i32 loc(callsite("a.py":1:2 at fused["b.py":3:4, "c.py":5:6]))
  return %1 : i32
}
