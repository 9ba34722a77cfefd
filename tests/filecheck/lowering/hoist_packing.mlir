// RUN: gradir-opt %s -p 'to-structured{target=cpu}' | filecheck %s
// RUN: gradir-opt %s -p 'to-structured{target=cpu},to-buffers,to-loops' --check-semantics -o %t
// RUN: gradir-opt %s -p 'to-structured{target=cpu},to-buffers,lower-kernels{strict=true}' | filecheck %s --check-prefix=LOOPS

builtin.module attributes {gradir.target = #target.cpu<"x86-64-v3", l1 = 512>} {

// The kernel that would pack in each step is gone; its variant reads panels of 16 columns, which are made before the loop.

// CHECK-LABEL: func.func private @contraction_0_packed_0
// CHECK-SAME:    tensor<8x16xf32>
// CHECK-NOT:     pack =
// CHECK-SAME:    operand 1 packed before the loop
// CHECK:         (((d1 floordiv 16) * 4) + d2), (d1 mod 16)
// CHECK-LABEL: func.func private @panels_0
// CHECK-NOT:   func.func private @contraction_0(
// CHECK-LABEL: func.func @cell
// CHECK:         call @panels_0
// CHECK:         scf.for
// CHECK:           call @contraction_0_packed_0

// LOOPS-LABEL: func.func private @contraction_0_packed_0
// LOOPS-NOT:     memref.alloc()
// LOOPS:         vector.load %{{.*}} : memref<8x16xf32>, vector<16xf32>
func.func @cell(%h: tensor<12x4xf32>, %w: tensor<4x32xf32>, %v: tensor<32x4xf32>) -> tensor<12x4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %0 = scf.for %i = %zero to %three step %one iter_args(%x = %h) -> (tensor<12x4xf32>) {
    %1 = nd.dot_general %x, %w contract [1] x [0] : tensor<12x4xf32>, tensor<4x32xf32> -> tensor<12x32xf32>
    %2 = nd.tanh %1 : tensor<12x32xf32>
    %3 = nd.dot_general %2, %v contract [1] x [0] : tensor<12x32xf32>, tensor<32x4xf32> -> tensor<12x4xf32>
    scf.yield %3 : tensor<12x4xf32>
  }
  return %0 : tensor<12x4xf32>
}

// What changes in the loop is packed there; columns that fill no whole panels (4 of %v above), too.

// CHECK-LABEL: func.func @power
// CHECK-NOT:     call @panels
func.func @power(%a: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %0 = scf.for %i = %zero to %three step %one iter_args(%x = %a) -> (tensor<32x32xf32>) {
    %1 = nd.dot_general %a, %x contract [1] x [0] : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
    %2 = nd.tanh %1 : tensor<32x32xf32>
    scf.yield %2 : tensor<32x32xf32>
  }
  return %0 : tensor<32x32xf32>
}
}
