// RUN: not gradir-opt %s -p 'cse,,dce' 2>&1 | filecheck %s --check-prefix=SYNTAX
// RUN: not gradir-opt %s -p 'cse2' 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not gradir-opt %s -p 'to-lops' 2>&1 | filecheck %s --check-prefix=NAMED
// RUN: not gradir-opt %s -p 'cse{fast}' 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not gradir-opt %s -p 'func.func(symbol-dce)' 2>&1 | filecheck %s --check-prefix=ANCHOR
// RUN: not gradir-opt %s -p 'to-structured{target=cpu,x}' 2>&1 | filecheck %s --check-prefix=TYPE
// RUN: not gradir-opt %s -p 'to-buffers{target=cpu}' 2>&1 | filecheck %s --check-prefix=PIPELINE

// SYNTAX:      gradir-opt: error: [graph GR033] bad pass pipeline: expected the name of a pass
// SYNTAX-NEXT:   found: cse,,dce
// SYNTAX-NEXT:              ^
// NAME:        [graph GR030] bad pass pipeline: unknown pass 'cse2'
// NAME-NEXT:     found: cse2
// NAME-NEXT:            ^
// NAME-NEXT:     next step: did you mean 'cse'?
// NAMED:       next step: did you mean 'to-loops'?
// OPTION:      [graph GR034] pass 'cse' has no option 'fast'
// OPTION-NEXT:   expected: no options
// ANCHOR:      [graph GR035] pass 'symbol-dce' cannot run on func.func
// ANCHOR-NEXT:   expected: a pipeline on builtin.module
// TYPE:        [graph GR034] option 'target' of pipeline 'to-structured' has a value of another type
// PIPELINE:    [graph GR032] pipeline 'to-buffers' has no option 'target'
