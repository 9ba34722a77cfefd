// RUN: gradir-opt -p differentiate %s | filecheck %s

// Generated code is for people too: the derivative of %h is %dh, the stack of %h is %hs, and what is read from it is %h again.
// CHECK-LABEL: @loss.grad_0
// CHECK:       %h9, %hs = scf.for %t {{.*}} iter_args(%h = %h0, %hs_1 = %{{.*}})
// CHECK:       %{{.*}}, %dw = scf.for %k {{.*}} iter_args(%dn = %dh9, %dw_1 = %{{.*}})
// CHECK:         %[[T:t_[0-9]+]] = arith.subi
// CHECK:         %n_1 = nd.index_at %hs[
// CHECK:         %h_1 = nd.index_at %hs[%[[T]]]
// CHECK:         %da = nd.mul_strong %dn
// CHECK:         %dh = nd.dot_general %da, %w
// CHECK:         %dw_2 = nd.add %dw_1
func.func private @loss(%h0: tensor<2xf64>, %w: tensor<2x2xf64>) -> tensor<f64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %h9 = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0) -> (tensor<2xf64>) {
    %a = nd.dot_general %h, %w contract [0] x [0] : tensor<2xf64>, tensor<2x2xf64> -> tensor<2xf64>
    %n = nd.tanh %a : tensor<2xf64>
    scf.yield %n : tensor<2xf64>
  }
  %l = nd.reduce_sum %h9 dims [0] : tensor<2xf64> -> tensor<f64>
  return %l : tensor<f64>
}
func.func @reverse(%h0: tensor<2xf64>, %w: tensor<2x2xf64>) -> tensor<2x2xf64> {
  %g = ad.grad @loss(%h0, %w) wrt [1] : (tensor<2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
  return %g : tensor<2x2xf64>
}

// CHECK-LABEL: @product.jvp
// CHECK-SAME:  (%x: tensor<3xf64>, %y: tensor<3xf64>, %dx: tensor<3xf64>)
// CHECK:       %da = nd.mul_strong %dx
// CHECK:       %db = nd.mul_strong %da, %y
func.func private @product(%x: tensor<3xf64>, %y: tensor<3xf64>) -> tensor<3xf64> {
  %a = nd.sin %x : tensor<3xf64>
  %b = nd.mul %a, %y : tensor<3xf64>
  return %b : tensor<3xf64>
}
func.func @forward(%x: tensor<3xf64>, %y: tensor<3xf64>, %v: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %b, %db = ad.jvp @product(%x, %y, %v) wrt [0] : (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>)
  return %b, %db : tensor<3xf64>, tensor<3xf64>
}
