// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// scf.parallel has as many steps as bounds and indices.

func.func @f(%a: index, %b: index, %c: index) {
  // expected-error@+1 {{scf.parallel: lower bounds, upper bounds, steps and indices must be equally many, found 1, 2, 1 and 1}}
  "scf.parallel"(%a, %b, %b, %c) <{operandSegmentSizes = array<i32: 1, 2, 1, 0>}> ({
  ^bb0(%i: index):
    scf.reduce
  }) : (index, index, index, index) -> ()
  return
}
