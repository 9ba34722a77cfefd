// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A region yields what the op around it promises.

func.func @f(%c: i1, %x: f32) {
  // expected-error@+1 {{values that the else region yields must have the types of the results: expected (f32), found (i1)}}
  %0 = "scf.if"(%c) ({
    scf.yield %x : f32
  }, {
    scf.yield %c : i1
  }) : (i1) -> f32
  return
}

// -----

func.func @f(%c: i1, %x: f32) {
  // expected-error@+1 {{Block arguments with wrong type, expected f32, got f64}}
  %0 = "scf.while"(%x) ({
  ^bb0(%a: f32):
    scf.condition(%c) %a : f32
  }, {
  ^bb0(%a: f64):
    scf.yield %x : f32
  }) : (f32) -> f32
  return
}
