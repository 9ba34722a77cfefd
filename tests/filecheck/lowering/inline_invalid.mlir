// RUN: gradir-opt %s -p inline --split-input-file --verify-diagnostics

func.func private @self(%x: i32) -> i32 {
  // expected-error@+1 {{@self calls itself}}
  %r = call @self(%x) : (i32) -> i32
  return %r : i32
}

// -----

func.func private @even(%x: i32) -> i32 {
  %r = call @odd(%x) : (i32) -> i32
  return %r : i32
}
func.func private @odd(%x: i32) -> i32 {
  // expected-error@below {{@even calls itself}}
  // expected-note@below {{found: @even -> @odd -> @even}}
  // expected-note@below {{in function: @odd}}
  // expected-note@below {{expected: calls without a cycle}}
  // expected-note@below {{next step: write the repetition as scf.while or scf.for}}
  %r = call @even(%x) : (i32) -> i32
  return %r : i32
}
