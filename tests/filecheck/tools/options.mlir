// RUN: gradir-opt %s --load %S/Inputs/plugin.py -p 'test-options' | filecheck %s --check-prefix=DEFAULT
// RUN: gradir-opt %s --load %S/Inputs/plugin.py -p 'test-options{text="a b" count=3 scale=2 fast sizes=4,5}' | filecheck %s --check-prefix=ALL
// RUN: gradir-opt %s --load %S/Inputs/plugin.py -p 'test-options{text=sm_90 scale=1e-3 fast=false sizes=7}' | filecheck %s --check-prefix=SOME
// RUN: not gradir-opt %s --load %S/Inputs/plugin.py -p 'test-options{count=many}' 2>&1 | filecheck %s --check-prefix=WRONG
// RUN: not gradir-opt %s --load %S/Inputs/plugin.py -p 'test-options{cuont=3}' 2>&1 | filecheck %s --check-prefix=NEAR

// DEFAULT: builtin.module attributes {options = "default 0 1.0 False ()"}
// ALL:     options = "a b 3 2.0 True (4, 5)"
// SOME:    options = "sm_90 0 0.001 False (7,)"
// WRONG:      [graph GR034] option 'count' of pass 'test-options' has a value of another type
// WRONG-NEXT:   expected: int
// WRONG-NEXT:   found: 'many'
// NEAR:    next step: did you mean 'count'?
module {
}
