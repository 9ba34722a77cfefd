// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{unknown op 'arith.no_such_op'}}
%0 = arith.no_such_op

// -----

// expected-error@+1 {{unknown op 'nd.thanh'; did you mean 'nd.tanh'?}}
%0 = nd.thanh %x : tensor<4xf32>

// -----

// expected-error@+1 {{unknown op 'nodialect.op': no dialect 'nodialect' is registered}}
"nodialect.op"() : () -> ()

// -----

func.func @f(%x: i32) {
  // expected-error@+1 {{SSA value %x is already defined}}
  %x = arith.constant 0 : i32
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{Shape mismatch in dense literal}}
  %0 = arith.constant dense<[1, 2]> : tensor<3xi32>
  return
}

// -----

func.func @f(%x: i32) {
  // expected-error@+1 {{operand is used with type i64, but has been previously used or defined with type i32}}
  %0 = arith.addi %x, %x : i64
  return
}

// -----

// expected-error@+1 {{Could not parse entire input}}
}

// -----

#a = loc("a":1:1)
// expected-error@+1 {{re-declaration of alias '#a'}}
#a = loc("b":1:1)
func.func private @f()

// -----

func.func @f() {
^a:
  return
// expected-error@+1 {{re-declaration of block 'a'}}
^a:
  return
}

// -----

func.func @f() -> i32 {
  // expected-error@+1 {{use of undefined value %missing}}
  return %missing : i32
}
