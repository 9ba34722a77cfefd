// RUN: gradir-opt %s -p 'differentiate{check}' | filecheck %s
// RUN: gradir-opt %s -p 'differentiate{check},inline,symbol-dce,cse' | filecheck %s --check-prefix=KEPT
// RUN: gradir-opt %s -p 'differentiate{check},to-structured{target=cpu},to-buffers,to-loops' --check-semantics=0,2 | filecheck %s --check-prefix=LOOPS
// RUN: gradir-opt %s -p 'differentiate{check}' | gradir-translate --to=llvm-ir | filecheck %s --check-prefix=CODE

// Forward mode stands beside the gradient that was asked for; checks follow, which pair both, and the gradient with differences of @f.

// CHECK:       func.func private @f.jvp
// CHECK-LABEL: func.func private @f.check_dot_0(%x: tensor<3xf64>, %n: tensor<i32>, %x_direction: tensor<3xf64>)
// CHECK-SAME:    gradir.check = {kind = "dot", function = "f", request = "ad.grad @f wrt [0]"}
// CHECK:         func.call @f.jvp(%x, %n, %x_direction)
// CHECK:         %[[G:.*]] = func.call @f.grad_0(%x, %n)
// CHECK:         nd.mul_strong %[[G]], %x_direction
// CHECK:         func.return %reverse, %forward, %tolerance, %ok : tensor<f64>, tensor<f64>, tensor<f64>, tensor<i1>
// CHECK-LABEL: func.func private @f.check_fd_0(%x: tensor<3xf64>, %n: tensor<i32>, %x_direction: tensor<3xf64>)
// CHECK-COUNT-5: func.call @f(
// CHECK:         func.call @f.grad_0(%x, %n)
// CHECK:         func.return %derivative, %slope, %tolerance, %ok

// Nobody calls them, and yet they stay,
// KEPT:     func.func private @f.check_dot_0
// KEPT:     func.func private @f.check_fd_0
// KEPT-NOT: func.func private

// down to loops,
// LOOPS: func.func private @f.check_dot_0({{.*}}gradir.check
// LOOPS: func.func private @f.check_fd_0({{.*}}gradir.check

// but not into code.
// CODE:     define {{.*}} @step
// CODE-NOT: check_

func.func private @f(%x: tensor<3xf64>, %n: tensor<i32>) -> tensor<f64> {
  %s = nd.sin %x : tensor<3xf64>
  %p = nd.mul %s, %x : tensor<3xf64>
  %l = nd.reduce_sum %p dims [0] : tensor<3xf64> -> tensor<f64>
  return %l : tensor<f64>
}
func.func @step(%x: tensor<3xf64>, %n: tensor<i32>) -> tensor<3xf64> {
  %g = ad.grad @f(%x, %n) wrt [0] : (tensor<3xf64>, tensor<i32>) -> tensor<3xf64>
  return %g : tensor<3xf64>
}
