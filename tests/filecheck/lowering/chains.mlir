// RUN: gradir-opt %s -p 'differentiate,to-structured{target=cpu},to-buffers,to-loops' --check-semantics -o %t
// RUN: gradir-opt %s -p 'differentiate,to-structured{target=cpu}' | filecheck %s
// RUN: gradir-opt %s -p 'differentiate,to-structured{target=cpu},to-buffers,lower-kernels{strict=true}' | filecheck %s --check-prefix=LOOPS

// The caches are small, so that small scores outgrow them.
builtin.module attributes {gradir.target = #target.cpu<"x86-64-v3", threads = 2, l2 = 10240, l3 = 65536>} {

// No tensor of scores is left: the softmax and both products are one kernel, and so is the whole gradient, with scores of its own.

// CHECK-LABEL: func.func private @chain_0
// CHECK-SAME:    #kernel.chain<block = [12], parallel = [0, 1]>
// CHECK-SAME:    3 stages over blocks of 12 rows
// CHECK-LABEL: func.func private @chain_1
// CHECK-SAME:    8 stages
// CHECK-LABEL: func.func private @chain_2
// CHECK-SAME:    3 stages
// CHECK-LABEL: func.func private @contraction_0
// CHECK-LABEL: func.func @attend
// CHECK-NOT:     tensor<2x3x12x20xf32>
// CHECK-LABEL: func.func @gradient
// CHECK-NOT:     tensor<2x3x12x20xf32>
// CHECK:         call @chain_1

// LOOPS-LABEL: func.func private @chain_0
// LOOPS:         scf.parallel
// LOOPS:           scf.for
// LOOPS-LABEL: func.func private @chain_1
// LOOPS:         scf.parallel
func.func @attend(%q: tensor<2x3x12x4xf32>, %k: tensor<2x3x20x4xf32>, %v: tensor<2x3x20x4xf32>, %b: tensor<3x12x20xf32>) -> tensor<2x3x12x4xf32> {
  %s = nd.dot_general %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x3x12x4xf32>, tensor<2x3x20x4xf32> -> tensor<2x3x12x20xf32>
  %bias = nd.broadcast %b dims [1, 2, 3] : tensor<3x12x20xf32> -> tensor<2x3x12x20xf32>
  %t = nd.add %s, %bias : tensor<2x3x12x20xf32>
  %p = nd.softmax %t dim 3 : tensor<2x3x12x20xf32>
  %o = nd.dot_general %p, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x3x12x20xf32>, tensor<2x3x20x4xf32> -> tensor<2x3x12x4xf32>
  return %o : tensor<2x3x12x4xf32>
}
func.func @gradient(%q: tensor<2x3x12x4xf32>, %k: tensor<2x3x20x4xf32>, %v: tensor<2x3x20x4xf32>, %m: tensor<3x12x20xf32>, %ct: tensor<2x3x12x4xf32>) -> (tensor<2x3x12x4xf32>, tensor<2x3x12x4xf32>, tensor<2x3x20x4xf32>, tensor<2x3x20x4xf32>) {
  %o, %dq, %dk, %dv = ad.vjp @attend(%q, %k, %v, %m, %ct) wrt [0, 1, 2] : (tensor<2x3x12x4xf32>, tensor<2x3x20x4xf32>, tensor<2x3x20x4xf32>, tensor<3x12x20xf32>, tensor<2x3x12x4xf32>) -> (tensor<2x3x12x4xf32>, tensor<2x3x12x4xf32>, tensor<2x3x20x4xf32>, tensor<2x3x20x4xf32>)
  return %o, %dq, %dk, %dv : tensor<2x3x12x4xf32>, tensor<2x3x12x4xf32>, tensor<2x3x20x4xf32>, tensor<2x3x20x4xf32>
}

// Groups of two heads share keys and values; the rows of a block know where they stand.
func.func @causal(%q: tensor<2x17x4x6xf32>, %k: tensor<2x33x2x6xf32>, %v: tensor<2x33x2x5xf32>) -> tensor<2x17x4x5xf32> {
  %0 = nd.attention %q, %k, %v causal scale 0.5 : tensor<2x17x4x6xf32>, tensor<2x33x2x6xf32>, tensor<2x33x2x5xf32> -> tensor<2x17x4x5xf32>
  return %0 : tensor<2x17x4x5xf32>
}

// What fits into the cache stays as it was.
func.func @small(%q: tensor<2x7x4xf32>, %k: tensor<2x9x4xf32>) -> tensor<2x7x4xf32> {
  %s = nd.dot_general %q, %k batch [0] x [0] contract [2] x [2] : tensor<2x7x4xf32>, tensor<2x9x4xf32> -> tensor<2x7x9xf32>
  %p = nd.softmax %s dim 2 : tensor<2x7x9xf32>
  %o = nd.dot_general %p, %k batch [0] x [0] contract [2] x [1] : tensor<2x7x9xf32>, tensor<2x9x4xf32> -> tensor<2x7x4xf32>
  return %o : tensor<2x7x4xf32>
}
}
