// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// gradir.kernel belongs on a function.

// expected-error@+1 {{carries gradir.kernel = #kernel.loops<>, which belongs on a func.func}}
module attributes {gradir.kernel = #kernel.loops<>} {
}
