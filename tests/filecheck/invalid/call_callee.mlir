// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A call names a function by a flat symbol.

func.func @f() {
  // expected-error@+1 {{needs a flat symbol as property 'callee', found @a::@b}}
  "func.call"() <{callee = @a::@b}> : () -> ()
  return
}
