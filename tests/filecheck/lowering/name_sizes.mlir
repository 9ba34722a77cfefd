// RUN: gradir-opt %s -p name-sizes | filecheck %s
// RUN: gradir-opt %s -p 'name-sizes,name-sizes' | filecheck %s
// RUN: gradir-opt %s -p 'name-sizes,differentiate,to-structured{target=cpu},to-buffers,to-loops' --check-semantics

// Arguments that are used as one shape get one name; sizes of results follow.
// CHECK-LABEL: func.func @one_shape(%x: tensor<?x4xf32, ["x_0", ""]>, %y: tensor<?x4xf32, ["x_0", ""]>) -> tensor<?xf32, ["8*x_0"]>
// CHECK:         nd.concatenate {{.*}} -> tensor<?x4xf32, ["2*x_0", ""]>
// CHECK-NOT:     nd.assert
func.func @one_shape(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?xf32> {
  %0 = nd.add %x, %y : tensor<?x4xf32>
  %1 = nd.concatenate %0, %x dim 0 : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  %2 = nd.reshape %1 : tensor<?x4xf32> -> tensor<?xf32>
  return %2 : tensor<?xf32>
}

// A size that an operand gives is followed, or bound.
// CHECK-LABEL: func.func @given
// CHECK:         nd.iota dim 0 sizes (%{{.*}}) : tensor<?xf32, ["2*x_0"]>
// CHECK:         nd.bind %n as "size0"
// CHECK:         nd.iota dim 0 sizes (%n) : tensor<?xf32, ["size0"]>
func.func @given(%x: tensor<?xf32>, %n: index) -> (tensor<?xf32>, tensor<f32>) {
  %d = nd.dim %x dim 0 : tensor<?xf32>
  %t = arith.addi %d, %d : index
  %0 = nd.iota dim 0 sizes (%t) : tensor<?xf32>
  %1 = nd.iota dim 0 sizes (%n) : tensor<?xf32>
  %2 = nd.reduce_sum %1 dims [0] : tensor<?xf32> -> tensor<f32>
  return %0, %2 : tensor<?xf32>, tensor<f32>
}

// What cannot be proven is asserted.
// CHECK-LABEL: func.func @asserted
// CHECK:         %[[D:.*]] = nd.symbol "floordiv(x_0+1,2)"
// CHECK:         arith.cmpi eq, %[[D]]
// CHECK:         nd.assert %{{.*}}, "dimension 0 has size max(x_0-1,0)" : i1
// CHECK:         nd.dynamic_slice %{{.*}} sizes [-1] : {{.*}} -> tensor<?xf32, ["max(x_0-1,0)"]>
func.func @asserted(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = nd.slice %x start [1] limit [-1] : tensor<?xf32> -> tensor<?xf32>
  %1 = nd.slice %x start [0] limit [-1] stride [2] : tensor<?xf32> -> tensor<?xf32>
  %2 = nd.add %0, %1 : tensor<?xf32>
  return %2 : tensor<?xf32>
}

// Loops keep the types of what they carry, branches give one type.
// CHECK-LABEL: func.func @control
// CHECK:         scf.for {{.*}} -> (tensor<?xf32, ["x_0"]>)
// CHECK:         scf.if {{.*}} -> (tensor<?xf32, ["x_0"]>)
func.func @control(%x: tensor<?xf32>, %n: index, %p: i1) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<?xf32>) {
    %b = nd.mul %a, %x : tensor<?xf32>
    scf.yield %b : tensor<?xf32>
  }
  %1 = scf.if %p -> (tensor<?xf32>) {
    scf.yield %0 : tensor<?xf32>
  } else {
    %e = nd.exp %x : tensor<?xf32>
    scf.yield %e : tensor<?xf32>
  }
  return %1 : tensor<?xf32>
}

// A private function is rebuilt for the arguments that it is called with, once for each kind.
// CHECK-LABEL: func.func private @loss(%w: tensor<4xf32>, %x: tensor<?x4xf32, ["x_0", ""]>) -> tensor<f32>
// CHECK-LABEL: func.func private @loss.1(%w: tensor<4xf32>, %x: tensor<?x4xf32, ["2*x_0", ""]>) -> tensor<f32>
// CHECK-LABEL: func.func @called
// CHECK:         ad.value_and_grad @loss(%w, %x)
// CHECK:         func.call @loss.1(%w, %{{.*}})
func.func private @loss(%w: tensor<4xf32>, %x: tensor<?x4xf32>) -> tensor<f32> {
  %0 = nd.dot_general %x, %w contract [1] x [0] : tensor<?x4xf32>, tensor<4xf32> -> tensor<?xf32>
  %1 = nd.reduce_sum %0 dims [0] : tensor<?xf32> -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @called(%w: tensor<4xf32>, %x: tensor<?x4xf32>) -> (tensor<4xf32>, tensor<f32>) {
  %0:2 = ad.value_and_grad @loss(%w, %x) wrt [0] : (tensor<4xf32>, tensor<?x4xf32>) -> (tensor<f32>, tensor<4xf32>)
  %1 = nd.concatenate %x, %x dim 0 : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  %2 = func.call @loss(%w, %1) : (tensor<4xf32>, tensor<?x4xf32>) -> tensor<f32>
  return %0#1, %2 : tensor<4xf32>, tensor<f32>
}
