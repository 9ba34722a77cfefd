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
