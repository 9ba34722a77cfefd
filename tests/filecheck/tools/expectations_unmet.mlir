// What is not met, not expected, or malformed fails the run.
// RUN: not gradir-opt %s --split-input-file --verify-diagnostics 2>&1 | filecheck %s

// CHECK:      {{.*}}expectations_unmet.mlir:[[# @LINE + 1]]:1: error: expected error "never happens" at line [[# @LINE + 2]] was not produced
// expected-error@+1 {{never happens}}
func.func @f() { return }

// -----

// CHECK:      {{.*}}expectations_unmet.mlir:[[# @LINE + 1]]:18: error: unexpected error: 'func.call' op calls @missing
func.func @f() { call @missing() : () -> () return }

// -----

// CHECK:      {{.*}}expectations_unmet.mlir:[[# @LINE + 1]]:1: [graph GR012] malformed expected-... comment
// expected-error {no text}
func.func @f() { return }
