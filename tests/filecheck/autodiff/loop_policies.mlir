// RUN: gradir-opt -p 'differentiate{loop-policy=none}' %s --check-semantics | filecheck %s --check-prefix=NONE
// RUN: gradir-opt -p 'differentiate{loop-policy=sqrt}' %s --check-semantics | filecheck %s --check-prefix=SQRT
// RUN: gradir-opt -p differentiate %s --check-semantics | filecheck %s --check-prefix=ALL
// RUN: gradir-opt -p 'differentiate{loop-policy=none},cse,canonicalize' %s | filecheck %s --check-prefix=APART

// Everything that the backward part reads: both the argument and the product, of 9 iterations.
// ALL-LABEL: func.func private @loss.grad_0
// ALL:         scf.for {{.*}} -> (tensor<8xf32>, tensor<9x8xf32>, tensor<9x8xf32>) {
// ALL:         scf.for
// ALL-NOT:     nd.sin
// ALL:         return

// The carried value alone; the body runs again behind a barrier that waits for the cotangent, and another one keeps it apart from the
// backward part.
// NONE-LABEL: func.func private @loss.grad_0
// NONE:         %[[H:.*]], %[[HS:.*]] = scf.for {{.*}} -> (tensor<8xf32>, tensor<9x8xf32>) {
// NONE:         } {gradir.residuals = "none"}
// NONE:         %[[SAVED:.*]], %[[X:.*]], %{{.*}} = nd.optimization_barrier %[[HS]], %x, %[[CT:.*]] : tensor<9x8xf32>, tensor<8xf32>, tensor<8xf32>
// NONE:         scf.for {{.*}} iter_args(%[[C:.*]] = %[[CT]],
// NONE:           %[[S:.*]] = nd.index_at %[[SAVED]]
// NONE:           %[[A:.*]] = nd.mul %[[S]], %[[X]]
// NONE-NOT:       nd.sin
// NONE:           nd.optimization_barrier %[[A]]
// NONE:           nd.cos
// NONE:         } {gradir.residuals = "none"}

// Three segments of three iterations: the carried value at the beginning of each, and within one of them everything.
// SQRT-LABEL: func.func private @loss.grad_0
// SQRT:         scf.for {{.*}} -> (tensor<8xf32>, tensor<3x8xf32>) {
// SQRT:           scf.for {{.*}} -> (tensor<8xf32>) {
// SQRT:           } {gradir.residuals = "segment"}
// SQRT:         } {gradir.residuals = "none"}
// SQRT:         nd.optimization_barrier %{{.*}}, %x, %{{.*}} : tensor<3x8xf32>, tensor<8xf32>, tensor<8xf32>
// SQRT:         scf.for
// SQRT:           scf.for {{.*}} -> (tensor<8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) {
// SQRT:             nd.sin
// SQRT:           scf.for
// SQRT-NOT:         nd.sin
// SQRT:         return

// No pass merges the two runs: two products with %x in the forward part and when it runs again, one more of the derivative.
// APART-LABEL: func.func private @loss.grad_0
// APART:         scf.for
// APART:           nd.mul %{{.*}}, %x
// APART:         scf.for
// APART:           nd.mul
func.func private @loss(%x: tensor<8xf32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 9 : index
  %h = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<8xf32>) {
    %a = nd.mul %s, %x : tensor<8xf32>
    %b = nd.sin %a : tensor<8xf32>
    scf.yield %b : tensor<8xf32>
  }
  %r = nd.reduce_sum %h dims [0] : tensor<8xf32> -> tensor<f32>
  return %r : tensor<f32>
}
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %g = ad.grad @loss(%x) wrt [0] : (tensor<8xf32>) -> tensor<8xf32>
  return %g : tensor<8xf32>
}
