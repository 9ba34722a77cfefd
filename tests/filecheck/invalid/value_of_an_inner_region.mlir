// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A value of an inner region is not seen outside.

func.func @f() {
  // expected-error@+1 {{operand #0 is defined in no region around this use}}
  scf.if %c {
    %c = arith.constant 1 : i1
  }
  return
}

// -----

// expected-error@+1 {{holds a use of a value that is defined in no region around it}}
func.func @f() {
  return
^bb1:
  scf.if %c {
    %c = arith.constant 1 : i1
  }
  return
}

// -----

func.func @f(%c: i1) {
  // expected-error@+1 {{operand #0 does not dominate this use: defined in a region that does not enclose this use}}
  %1 = arith.index_cast %0 : i32 to index
  scf.if %c {
    // expected-note@+1 {{operand defined here}}
    %0 = arith.constant 1 : i32
  }
  return
}

// -----

func.func @f(%c: i1) -> i32 {
  scf.if %c {
    %0 = arith.constant 1 : i32
  }
  // expected-error@+1 {{use of undefined value %0}}
  return %0 : i32
}
