// RUN: gradir-opt %s | gradir-opt | filecheck %s
// RUN: gradir-opt %s -p canonicalize,cse,dce | filecheck %s --check-prefix=KEPT
// RUN: gradir-opt %s -p 'to-structured{target=cpu}' --check-semantics | filecheck %s --check-prefix=LOW

// CHECK-LABEL: @effects
// CHECK:         %[[A:.*]], %[[B:.*]] = nd.optimization_barrier %x, %n : tensor<4xf32>, tensor<i1>
// CHECK-NEXT:    nd.assert %[[B]], "n holds" : tensor<i1>
// CHECK:         nd.assert %{{.*}}, "two" : i1

// Both assertions stay, in their order; the barrier is not looked through.
// KEPT-LABEL: @effects
// KEPT:         %[[A:.*]], %{{.*}} = nd.optimization_barrier %x
// KEPT:         "n holds"
// KEPT:         "two"
// KEPT:         nd.neg %[[A]]

// LOW-LABEL: @effects
// LOW-DAG:     tensor.cast %x {gradir.barrier = 0 : i64} : tensor<4xf32> to tensor<4xf32>
// LOW-DAG:     tensor.cast %n {gradir.barrier = 0 : i64} : tensor<i1> to tensor<i1>
// LOW:         cf.assert %{{.*}}, "n holds"
// LOW:         cf.assert %{{.*}}, "two"
func.func @effects(%x: tensor<4xf32>, %n: tensor<i1>, %k: index) -> tensor<4xf32> {
  %a, %b = nd.optimization_barrier %x, %n : tensor<4xf32>, tensor<i1>
  nd.assert %b, "n holds" : tensor<i1>
  %two = arith.constant 2 : index
  %least = arith.cmpi sle, %k, %two : index
  nd.assert %least, "two" : i1
  %r = nd.neg %a : tensor<4xf32>
  return %r : tensor<4xf32>
}
