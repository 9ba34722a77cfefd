// RUN: gradir-opt %s --mlir-print-debuginfo | filecheck %s
// RUN: gradir-opt %s --mlir-print-debuginfo | gradir-opt - --mlir-print-debuginfo | filecheck %s
// RUN: gradir-opt %s --mlir-print-debuginfo --print-op-generic | gradir-opt - --mlir-print-debuginfo | filecheck %s

// An op is where its name stands, an argument where it is named; explicit locations win; aliases may stand below their uses.
// CHECK:      func.func @f(%x: i32 loc("{{.*}}locations.mlir":[[# @LINE + 2]]:14)
// CHECK-SAME: %y: i32 loc("model.py":3:4))
func.func @f(%x: i32, %y: i32 loc("model.py":3:4)) -> i32 {
  // CHECK: arith.addi {{.*}} loc("{{.*}}locations.mlir":[[# @LINE + 1]]:8)
  %0 = arith.addi %x, %y : i32
  // CHECK: arith.muli {{.*}} loc("model.py":7:1)
  %1 = arith.muli %0, %0 : i32 loc(#late)
  // CHECK: arith.subi {{.*}} loc(fused<"merged">["a.py":1:2, "b.py":3:4])
  %2 = arith.subi %1, %0 : i32 loc(#fused)
  // CHECK: arith.addi {{.*}} loc(callsite("model.py":7:1 at "name"("a.py":1:2)))
  %3 = arith.addi %2, %0 : i32 loc(callsite(#late at "name"("a.py":1:2)))
  // CHECK: arith.addi {{.*}} loc("range.py":5:6)
  %4 = arith.addi %3, %0 : i32 loc("range.py":5:6 to :9)
  // CHECK: arith.addi {{.*}} loc("range.py":5:6)
  %5 = arith.addi %4, %0 : i32 loc("range.py":5:6 to 7:1)
  // CHECK: arith.addi {{.*}} loc(unknown)
  %6 = arith.addi %5, %0 : i32 loc(unknown)
  // CHECK:      scf.while
  // CHECK:        ^bb0(%n: i32 loc("{{.*}}locations.mlir":[[# @LINE + 6]]:8)):
  // CHECK:      } loc("{{.*}}locations.mlir":[[# @LINE + 1]]:8)
  %7 = scf.while (%a = %6) : (i32) -> i32 {
    %c = arith.cmpi slt, %a, %x : i32
    scf.condition(%c) %a : i32
  } do {
  ^bb0(%n: i32):
    %b = arith.addi %n, %n : i32
    scf.yield %b : i32
  }
  return %7 : i32
}
#fused = loc(fused<"merged">[#a, "b.py":3:4])
#a = loc("a.py":1:2)
#late = loc("model.py":7:1)
