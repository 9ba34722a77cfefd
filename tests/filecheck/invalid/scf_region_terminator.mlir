// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A region of scf ends in scf.yield.

func.func @f(%n: index, %x: f32) {
  // expected-error@+1 {{terminates with operation func.return instead of scf.yield}}
  %0 = "scf.for"(%n, %n, %n, %x) ({
  ^bb0(%i: index, %s: f32):
    // expected-error@+1 {{expects parent op}}
    func.return
  }) : (index, index, index, f32) -> f32
  return
}
