// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// scf.reduce has one region per operand, of two values.

func.func @f(%a: index, %b: index, %c: index, %x: f32) {
  %0 = "scf.parallel"(%a, %b, %c, %x) <{operandSegmentSizes = array<i32: 1, 1, 1, 1>}> ({
  ^bb0(%i: index):
    // expected-error@+1 {{scf.reduce: 1 operands and 0 regions}}
    "scf.reduce"(%x) : (f32) -> ()
  }) : (index, index, index, f32) -> f32
  return
}

// -----

func.func @f(%a: index, %b: index, %c: index, %x: f32) {
  %0 = "scf.parallel"(%a, %b, %c, %x) <{operandSegmentSizes = array<i32: 1, 1, 1, 1>}> ({
  ^bb0(%i: index):
    // expected-error@+1 {{scf.reduce: a region must take two values of type f32, found (f32, f64)}}
    "scf.reduce"(%x) ({
    ^bb1(%l: f32, %r: f64):
      scf.reduce.return %l : f32
    }) : (f32) -> ()
  }) : (index, index, index, f32) -> f32
  return
}
