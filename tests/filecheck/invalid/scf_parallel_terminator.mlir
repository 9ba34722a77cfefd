// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// The body of scf.parallel ends in scf.reduce.

func.func @f(%a: index) {
  // expected-error@+1 {{terminates with operation scf.yield instead of scf.reduce}}
  "scf.parallel"(%a, %a, %a) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    // expected-error@+1 {{expects parent op to be one of}}
    scf.yield
  }) : (index, index, index) -> ()
  return
}
