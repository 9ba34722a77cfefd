// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// Several errors a run.
func.func @below() -> i32 {
  // expected-error@+2 {{'arith.addi' op operand #0 does not dominate this use: defined below this use}}
  // expected-error@+1 {{'arith.addi' op operand #1 does not dominate this use: defined below this use}}
  %a = arith.addi %b, %b : i32
  // expected-note@+2 {{operand defined here}}
  // expected-note@+1 {{operand defined here}}
  %b = arith.constant 1 : i32
  // expected-error@+1 {{'func.return' op}}
  return
}

// -----

// expected-note@+1 {{operand defined here}}
func.func @isolated(%x: i32) {
  func.func @inner() {
    // expected-error@+1 {{operand #0 does not dominate this use: defined outside of the isolated op around this use}}
    %0 = arith.index_cast %x : i32 to index
    return
  }
  return
}

// -----

func.func @after_region(%c: i1) {
  scf.if %c {
    // expected-error@+1 {{operand #0 does not dominate this use: defined below the op around this use}}
    %1 = arith.index_cast %0 : i32 to index
  }
  // expected-note@+1 {{operand defined here}}
  %0 = arith.constant 1 : i32
  return
}

// -----

func.func @blocks(%c: i1) -> i32 {
  cf.cond_br %c, ^a, ^b
^a:
  // expected-note@+1 {{operand defined here}}
  %0 = arith.constant 1 : i32
  cf.br ^b
^b:
  // expected-error@+1 {{operand #0 does not dominate this use: defined in a block that does not dominate it}}
  return %0 : i32
}

// -----

// Legal: a block that dominates although it stands below, unreachable code, a loop between blocks.
func.func @legal(%c: i1) -> i32 {
  cf.br ^late
^early:
  cf.cond_br %c, ^late2, ^exit
^late:
  %0 = arith.constant 1 : i32
  cf.br ^early
^late2:
  cf.br ^early
^exit:
  return %0 : i32
^unreachable:
  %1 = arith.addi %1, %0 : i32
  cf.br ^exit
}

// -----

func.func @terminator(%x: i32) {
  // expected-error@+1 {{'arith.addi' op ends its block but is not a terminator}}
  %0 = arith.addi %x, %x : i32
}

// -----

// expected-note@+1 {{first defined here}}
func.func @twice() { return }
// expected-error@+1 {{'func.func' op redefines the symbol @twice}}
func.func @twice() { return }

// -----

func.func @calls(%x: i32) {
  // expected-error@+1 {{'func.call' op calls @missing, which is not a function of this module}}
  call @missing() : () -> ()
  // expected-error@+1 {{'func.call' op has 0 arguments, but @callee has 1}}
  call @callee() : () -> i32
  // expected-error@+1 {{'func.call' op result #0 has type i64, but @callee has i32}}
  %0 = call @callee(%x) : (i32) -> i64
  return
}
// expected-note@+2 {{callee defined here}}
// expected-note@+1 {{callee defined here}}
func.func private @callee(i32) -> i32

// -----

// A verifier of an op class: the message names the op.
func.func @class(%x: tensor<2xf32>) {
  // expected-error@+1 {{'tensor.extract' op}}
  %0 = "tensor.extract"(%x) : (tensor<2xf32>) -> f64
  return
}
