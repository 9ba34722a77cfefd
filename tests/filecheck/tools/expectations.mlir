// Every form of an expectation, met.
// RUN: gradir-opt %s --split-input-file --verify-diagnostics --load %S/Inputs/plugin.py -p 'test-report'

func.func @forms(%x: i32) -> i32 { // expected-note {{first argument}}
  // expected-error @+1 {{'arith.addi' is not welcome}}
  %0 = arith.addi %x, %x : i32
  // expected-warning@+1 {{a warning}}
  %1 = arith.muli %x, %x : i32
  // expected-remark@+1 {{a remark}}
  %2 = arith.subi %x, %x : i32
  // expected-error@unknown {{somewhere}}
  %3 = arith.divsi %x, %x : i32 loc(unknown)
  return %0 : i32
}

// -----

func.func @above_and_below(%x: i32) -> i32 {
  %1 = arith.addi %x, %x : i32
  // expected-error@above {{'arith.addi' is not welcome}}
  // expected-error@below {{'arith.addi'}}
  // expected-note@-4 {{first argument}}
  // expected-note@-5 {{first argument}}
  // expected-note@-6 {{first argument}}
  %2 = arith.addi %x, %x : i32
  %3 = arith.addi %x, %x : i32 // expected-error-re {{'arith.{{[a-z]+}}' is {{not|never}} welcome}}
  return %1 : i32
}

// -----

// Nothing expected, nothing reported.
func.func @quiet() {
  return
}
