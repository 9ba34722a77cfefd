// RUN: gradir-opt %s | gradir-opt | filecheck %s
// RUN: gradir-opt %s --print-op-generic | gradir-opt | filecheck %s
// RUN: gradir-opt %s -p 'to-structured{target=cpu},to-buffers,to-loops' --check-semantics

// CHECK-LABEL: func.func @dims
// CHECK-SAME:    attributes {gradir.sizes = {b = {min = 2 : i64, max = 9 : i64}}}
// CHECK:         %[[B:.*]] = nd.dim %x dim 0 : tensor<?x4xf32, ["b", ""]>
// CHECK:         %[[N:.*]] = nd.symbol "2*b"
// CHECK:         nd.broadcast %{{.*}} dims [] sizes (%[[N]]) : tensor<f32> -> tensor<?xf32, ["2*b"]>
func.func @dims(%x: tensor<?x4xf32, ["b", ""]>) -> (tensor<i64>, tensor<?xf32, ["2*b"]>) attributes {gradir.sizes = {b = {min = 2 : i64, max = 9 : i64}}} {
  %b = nd.dim %x dim 0 : tensor<?x4xf32, ["b", ""]>
  %w = arith.index_cast %b : index to i64
  %t = tensor.from_elements %w : tensor<i64>
  %n = nd.symbol "2*b"
  %one = nd.constant splat(1.0 : f32) : tensor<f32>
  %y = nd.broadcast %one dims [] sizes (%n) : tensor<f32> -> tensor<?xf32, ["2*b"]>
  return %t, %y : tensor<i64>, tensor<?xf32, ["2*b"]>
}

// CHECK-LABEL: func.func @computed
// CHECK:         nd.concatenate {{.*}} -> tensor<?xf32, ["2*b+1"]>
// CHECK:         nd.slice {{.*}} start [1] limit [-3] stride [2] {{.*}} -> tensor<?xf32, ["max(b-1,0)"]>
// CHECK:         nd.dynamic_slice {{.*}} sizes [-1] {{.*}} -> tensor<?xf32, ["b"]>
func.func @computed(%x: tensor<?xf32, ["b"]>, %y: tensor<1xf32>) -> (tensor<?xf32, ["max(b-1,0)"]>, tensor<?xf32, ["b"]>) {
  %0 = nd.concatenate %x, %y, %x dim 0 : tensor<?xf32, ["b"]>, tensor<1xf32>, tensor<?xf32, ["b"]> -> tensor<?xf32, ["2*b+1"]>
  %1 = nd.slice %0 start [1] limit [-3] stride [2] : tensor<?xf32, ["2*b+1"]> -> tensor<?xf32, ["max(b-1,0)"]>
  %at = nd.constant splat(1 : i64) : tensor<i64>
  %2 = nd.dynamic_slice %0, %at sizes [-1] : tensor<?xf32, ["2*b+1"]>, tensor<i64> -> tensor<?xf32, ["b"]>
  return %1, %2 : tensor<?xf32, ["max(b-1,0)"]>, tensor<?xf32, ["b"]>
}

// CHECK-LABEL: func.func @shared_kernel
// One kernel serves two tensors under the name of the first, which an argument has: the second keeps its own size.
func.func @shared_kernel(%x: tensor<?xf32, ["b"]>) -> (tensor<?xf32, ["b"]>, tensor<?xf32, ["b+max(b-2,0)"]>) {
  %0 = nd.add %x, %x : tensor<?xf32, ["b"]>
  %part = nd.slice %x start [0] limit [-3] : tensor<?xf32, ["b"]> -> tensor<?xf32, ["max(b-2,0)"]>
  %1 = nd.add %part, %part : tensor<?xf32, ["max(b-2,0)"]>
  %2 = nd.concatenate %1, %0 dim 0 : tensor<?xf32, ["max(b-2,0)"]>, tensor<?xf32, ["b"]> -> tensor<?xf32, ["b+max(b-2,0)"]>
  return %0, %2 : tensor<?xf32, ["b"]>, tensor<?xf32, ["b+max(b-2,0)"]>
}
