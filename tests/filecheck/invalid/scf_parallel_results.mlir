// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// Initial values, operands of scf.reduce and results have the same types.

func.func @f(%a: index, %b: index, %c: index, %x: f32) {
  // expected-error@+1 {{scf.parallel: initial values, operands of scf.reduce and results must have the same types, found (f32), () and (f32)}}
  %0 = "scf.parallel"(%a, %b, %c, %x) <{operandSegmentSizes = array<i32: 1, 1, 1, 1>}> ({
  ^bb0(%i: index):
    scf.reduce
  }) : (index, index, index, f32) -> f32
  return
}
