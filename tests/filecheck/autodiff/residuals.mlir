// RUN: gradir-opt -p differentiate %s | filecheck %s

// The row number is worth redoing from the loop index: no residual of it is saved, and the backward loop casts its own.
// CHECK-LABEL: @loss.grad_0
// CHECK:       scf.for {{.*}} -> (tensor<f32>) {
// CHECK-NOT:   nd.update_at
// CHECK:       scf.for {{.*}} -> (tensor<f32>, tensor<5x3xf32>) {
// CHECK-NOT:   nd.index_at
// CHECK:         %[[ROW:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK:         %[[AT:.*]] = tensor.from_elements %[[ROW]] : tensor<i32>
// CHECK:         nd.dynamic_update_slice %{{.*}}, %{{.*}}, %[[AT]], %zero
func.func private @loss(%x: tensor<5x3xf32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %z = nd.constant splat(0.0 : f32) : tensor<f32>
  %zero = nd.constant splat(0 : i32) : tensor<i32>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %z) -> (tensor<f32>) {
    %n = arith.index_cast %i : index to i32
    %at = tensor.from_elements %n : tensor<i32>
    %row = nd.dynamic_slice %x, %at, %zero sizes [1, 3] : tensor<5x3xf32>, tensor<i32>, tensor<i32> -> tensor<1x3xf32>
    %sum = nd.reduce_sum %row dims [0, 1] : tensor<1x3xf32> -> tensor<f32>
    %next = nd.add %s, %sum : tensor<f32>
    scf.yield %next : tensor<f32>
  }
  return %r : tensor<f32>
}
func.func @f(%x: tensor<5x3xf32>) -> tensor<5x3xf32> {
  %g = ad.grad @loss(%x) wrt [0] : (tensor<5x3xf32>) -> tensor<5x3xf32>
  return %g : tensor<5x3xf32>
}

// A large product of what is kept anyway is made again from it: %t, the carried %h and %e have stacks, %m has none.
// CHECK-LABEL: @large.grad_0
// CHECK:       scf.for {{.*}} -> (tensor<64x128xf32>, tensor<9x64x128xf32>, tensor<9x64x128xf32>, tensor<9x64x128xf32>) {
// CHECK:       scf.for %k
// CHECK:         %[[H:h_[0-9]+]] = nd.index_at
// CHECK:         %[[E:e_[0-9]+]] = nd.index_at
// CHECK:         %m_{{[0-9]+}} = nd.mul %[[E]], %[[H]]
func.func private @large(%x: tensor<64x128xf32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%h = %x) -> (tensor<64x128xf32>) {
    %e = nd.exp %h : tensor<64x128xf32>
    %m = nd.mul %e, %h : tensor<64x128xf32>
    %q = nd.mul %m, %m : tensor<64x128xf32>
    %t = nd.tanh %q : tensor<64x128xf32>
    %n = nd.add %t, %h : tensor<64x128xf32>
    scf.yield %n : tensor<64x128xf32>
  }
  %s = nd.reduce_sum %r dims [0, 1] : tensor<64x128xf32> -> tensor<f32>
  return %s : tensor<f32>
}
func.func @g(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %g = ad.grad @large(%x) wrt [0] : (tensor<64x128xf32>) -> tensor<64x128xf32>
  return %g : tensor<64x128xf32>
}
