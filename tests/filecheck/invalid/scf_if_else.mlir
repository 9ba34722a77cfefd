// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// An scf.if with results has an else region.

func.func @f(%c: i1, %x: f32) {
  // expected-error@+1 {{has 1 results and needs an else region that yields them}}
  %0 = "scf.if"(%c) ({
    scf.yield %x : f32
  }, {
  }) : (i1) -> f32
  return
}
