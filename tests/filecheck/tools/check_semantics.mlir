// RUN: gradir-opt %s --check-semantics -p 'canonicalize,cse,differentiate,to-structured{target=cpu}' | filecheck %s --check-prefix=GOOD
// RUN: not gradir-opt %s --check-semantics=3,2 --load %S/Inputs/plugin.py -p 'cse,test-miscompile,dce' 2>&1 | filecheck %s --check-prefix=BAD
// RUN: not gradir-opt %s --check-semantics --load %S/Inputs/plugin.py -p 'to-structured{target=cpu},test-miscompile' 2>&1 | filecheck %s --check-prefix=LOW

// GOOD: linalg.generic
// BAD:      {{.*}}check_semantics.mlir:[[# @LINE + 7]]:8: error: pass test-miscompile: result 0 of @f differs at element [0, 0] {{.*}} [operator OP110]
// BAD:      note: in function: @f
// BAD-NEXT: note: expected:
// BAD-NEXT: note: found:
// LOW:      error: pass test-miscompile: result 0 of @f differs
func.func @f(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = nd.abs %x : tensor<2x3xf32>
  %0 = nd.sub %a, %y : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
