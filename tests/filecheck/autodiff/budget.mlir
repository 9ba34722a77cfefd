// RUN: gradir-opt -p 'differentiate{budget=100000}' %s --check-semantics | filecheck %s --check-prefix=ENOUGH
// RUN: gradir-opt -p 'differentiate{budget=20000}' %s --check-semantics | filecheck %s --check-prefix=SOME
// RUN: gradir-opt -p 'differentiate{budget=17000}' %s | filecheck %s --check-prefix=LITTLE
// RUN: gradir-opt -p 'differentiate{budget=3000}' %s 2>&1 | filecheck %s --check-prefix=NONE

// 64 iterations that save three values of 64 bytes, or carry one: 12 KiB, or 8 times 64 bytes, and within a segment 8 times as much as an
// iteration saves. The callee saves 256 values: 16 KiB.
// ENOUGH-LABEL: func.func private @loss.grad_0
// ENOUGH:         func.call @g.fwd
// ENOUGH:         scf.for
// ENOUGH:         } {gradir.residuals = "all"}

// The loop costs less to run again than the call.
// SOME-LABEL: func.func private @loss.grad_0
// SOME:         func.call @g.fwd
// SOME:         scf.for
// SOME:         } {gradir.residuals = "none"}

// Both: what the call saves is there once the loop is done with.
// LITTLE-LABEL: func.func private @loss.grad_0
// LITTLE:         func.call @g(
// LITTLE:         } {gradir.residuals = "none"}
// LITTLE:         scf.for
// LITTLE:         %[[X:.*]], %{{.*}} = nd.optimization_barrier %x, %{{.*}} : tensor<16xf32>, tensor<16xf32>
// LITTLE-NEXT:    func.call @g.fwd(%[[X]])

// NONE:         ad.grad: residuals of @loss take at least 16{{[0-9]+}} bytes, more than the budget of 3000
// NONE:         {gradir.residuals = "segment"}
func.func private @g(%x: tensor<16xf32>) -> tensor<16xf32> {
  %b = nd.broadcast %x dims [1] : tensor<16xf32> -> tensor<256x16xf32>
  %e = nd.exp %b : tensor<256x16xf32>
  %s = nd.reduce_sum %e dims [0] : tensor<256x16xf32> -> tensor<16xf32>
  return %s : tensor<16xf32>
}
func.func private @loss(%x: tensor<16xf32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 64 : index
  %a = func.call @g(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %h = scf.for %i = %c0 to %n step %c1 iter_args(%s = %a) -> (tensor<16xf32>) {
    %p = nd.mul %s, %x : tensor<16xf32>
    %q = nd.sin %p : tensor<16xf32>
    %r = nd.exp %q : tensor<16xf32>
    scf.yield %r : tensor<16xf32>
  }
  %r = nd.reduce_sum %h dims [0] : tensor<16xf32> -> tensor<f32>
  return %r : tensor<f32>
}
func.func @f(%x: tensor<16xf32>) -> tensor<16xf32> {
  %g = ad.grad @loss(%x) wrt [0] : (tensor<16xf32>) -> tensor<16xf32>
  return %g : tensor<16xf32>
}
