// RUN: gradir-opt %s -p 'to-structured{target=cpu}' --check-semantics | filecheck %s
// RUN: gradir-opt %s -p 'convert-nd-to-linalg,canonicalize,cse' | filecheck %s --check-prefix=SAME

// What stands on both sides of a barrier is not one kernel, and nothing behind it starts before all of it is there.
// CHECK-LABEL: func.func @apart
// CHECK:         func.call @elementwise_0(%x
// CHECK:         func.call @elementwise_0(%y
// CHECK-DAG:     %[[A:.*]] = tensor.cast %{{.*}} {gradir.barrier = 0 : i64}
// CHECK-DAG:     %[[B:.*]] = tensor.cast %{{.*}} {gradir.barrier = 0 : i64}
// CHECK:         func.call @elementwise_1(%[[A]]

// Equal values read through two barriers are computed twice: this is what recomputation in a derivative relies on.
// SAME-LABEL: func.func @twice
// SAME-COUNT-2: math.exp
func.func @apart(%x: tensor<64xf32>, %y: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = nd.exp %x : tensor<64xf32>
  %b = nd.exp %y : tensor<64xf32>
  %c, %d = nd.optimization_barrier %a, %b : tensor<64xf32>, tensor<64xf32>
  %r = nd.sin %c : tensor<64xf32>
  return %r, %d : tensor<64xf32>, tensor<64xf32>
}

func.func @twice(%x: tensor<64xf32>, %y: tensor<f32>, %z: tensor<f32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a, %p = nd.optimization_barrier %x, %y : tensor<64xf32>, tensor<f32>
  %b, %q = nd.optimization_barrier %x, %z : tensor<64xf32>, tensor<f32>
  %r = nd.exp %a : tensor<64xf32>
  %s = nd.exp %b : tensor<64xf32>
  return %r, %s : tensor<64xf32>, tensor<64xf32>
}
