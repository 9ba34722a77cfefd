// RUN: gradir-opt %s -p 'set-target{target=cpu cpu=znver4}' --split-input-file | filecheck %s

// CHECK: builtin.module attributes {gradir.target = #target.cpu<"znver4", vector = 16, registers = 32>}
module {
}

// -----

// A target that is there stays when the option agrees with it.
// CHECK: builtin.module attributes {gradir.target = #target.cpu<"znver4", vector = 4, threads = 3>}
module attributes {gradir.target = #target.cpu<"znver4", vector = 4, threads = 3>} {
}
