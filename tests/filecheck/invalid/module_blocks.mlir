// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A module is one block.

// expected-error@+1 {{has 2 blocks, at most one is allowed}}
"builtin.module"() ({
^bb0:
  // expected-error@+1 {{ends its block but is not a terminator}}
  "func.func"() <{sym_name = "f", function_type = () -> (), sym_visibility = "private"}> ({}) : () -> ()
^bb1:
  "func.func"() <{sym_name = "g", function_type = () -> (), sym_visibility = "private"}> ({}) : () -> ()
}) : () -> ()
