// RUN: not gradir-opt %s -p 'cse;dce' 2>&1 | filecheck %s --check-prefix=CHARACTER
// RUN: not gradir-opt %s -p 'set-target{target="cpu}' 2>&1 | filecheck %s --check-prefix=QUOTE
// RUN: not gradir-opt %s -p 'func.func(cse' 2>&1 | filecheck %s --check-prefix=PAREN
// RUN: not gradir-opt %s -p 'cse dce' 2>&1 | filecheck %s --check-prefix=END
// RUN: not gradir-opt %s -p 'cse,' 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not gradir-opt %s -p 'fuse{=1}' 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not gradir-opt %s -p 'fuse{join=1 join=2}' 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not gradir-opt %s -p 'fuse{join=}' 2>&1 | filecheck %s --check-prefix=VALUE

// The grammar of pipelines: each error points at its place in the text.

// CHARACTER:      [graph GR033] bad pass pipeline: unexpected character ';'
// CHARACTER-NEXT:   found: cse;dce
// CHARACTER-NEXT: {{^}}            ^
// QUOTE:          [graph GR033] bad pass pipeline: text without its closing quote
// QUOTE-NEXT:       found: set-target{target="cpu}
// QUOTE-NEXT:     {{^}}                           ^
// PAREN:          [graph GR033] bad pass pipeline: expected ')'
// PAREN-NEXT:       found: func.func(cse
// PAREN-NEXT:     {{^}}                      ^
// END:            [graph GR033] bad pass pipeline: expected ',' or the end
// END-NEXT:         found: cse dce
// END-NEXT:       {{^}}             ^
// NAME:           [graph GR033] bad pass pipeline: expected the name of a pass
// NAME-NEXT:        found: cse,
// NAME-NEXT:      {{^}}             ^
// OPTION:         [graph GR033] bad pass pipeline: expected the name of an option or '}'
// OPTION-NEXT:      found: fuse{=1}
// OPTION-NEXT:    {{^}}              ^
// TWICE:          [graph GR033] bad pass pipeline: option 'join' is given twice
// TWICE-NEXT:       found: fuse{join=1 join=2}
// TWICE-NEXT:     {{^}}                     ^
// VALUE:          [graph GR033] bad pass pipeline: expected a value; quote text that is not a word
// VALUE-NEXT:       found: fuse{join=}
// VALUE-NEXT:     {{^}}                   ^
