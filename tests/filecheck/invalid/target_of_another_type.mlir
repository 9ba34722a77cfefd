// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// gradir.target names a machine.

// expected-error@+1 {{must have #target.cpu<...> or #target.cuda<...> as gradir.target, found "cpu"}}
module attributes {gradir.target = "cpu"} {
}

// -----

module {
  // expected-error@+1 {{must have #target.cpu<...> or #target.cuda<...> as gradir.target, found 1 : i64}}
  func.func @f() attributes {gradir.target = 1 : i64} {
    return
  }
}
