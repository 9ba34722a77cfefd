// RUN: gradir-opt %s -p 'set-target{target=cuda}' --split-input-file --verify-diagnostics

// expected-error@+1 {{the module is already compiled for another kind of machine}}
module attributes {gradir.target = #target.cpu<"znver4", vector = 16>} {
}

// -----

// expected-error@+1 {{#target.cpu has no field 'lanes', expected one of: features, vector, registers}}
module attributes {gradir.target = #target.cpu<"znver4", lanes = 16>} {
}
