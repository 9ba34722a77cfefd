// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A block ends in a terminator.

// expected-error@+1 {{has an empty block: it needs a terminator}}
"func.func"() <{sym_name = "f", function_type = () -> ()}> ({
^bb0:
}) : () -> ()
