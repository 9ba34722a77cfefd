// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A region of scf is one block.

func.func @f(%n: index) {
  // expected-error@+1 {{Region 'body' at position 0 expected a single block, but got 2 blocks}}
  "scf.for"(%n, %n, %n) ({
  ^bb0(%i: index):
    scf.yield
  ^bb1:
    scf.yield
  }) : (index, index, index) -> ()
  return
}
