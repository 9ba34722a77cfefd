// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// The before region of scf.while ends in scf.condition.

func.func @f(%x: f32) {
  // expected-error@+1 {{needs a before region that ends in scf.condition, found scf.yield}}
  %0 = "scf.while"(%x) ({
  ^bb0(%a: f32):
    scf.yield %a : f32
  }, {
  ^bb0(%a: f32):
    scf.yield %a : f32
  }) : (f32) -> f32
  return
}
