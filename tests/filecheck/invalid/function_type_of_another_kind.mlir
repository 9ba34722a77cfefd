// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// The type of a function is a function type.

// expected-error@+1 {{3 : i64 should be of base attribute fun}}
"func.func"() <{sym_name = "f", function_type = 3 : i64}> ({
  // expected-error@+1 {{stands in a function whose type is 3 : i64}}
  "func.return"() : () -> ()
}) : () -> ()
