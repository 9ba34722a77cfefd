// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// What has successors ends its block.

func.func @f() {
  // expected-error@+2 {{has successors and must end its block}}
  // expected-error@+1 {{must be the last operation in its parent block}}
  "cf.br"()[^bb1] : () -> ()
  %0 = arith.constant 1 : i32
  "cf.br"()[^bb1] : () -> ()
^bb1:
  return
}
