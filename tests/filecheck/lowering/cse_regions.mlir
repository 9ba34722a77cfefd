// RUN: gradir-opt %s -p cse --check-semantics | filecheck %s

// Equal ops with equal regions merge, whatever their values are called; equal ops inside of one merge, but not with those outside:
// a region reads nothing from there.
// CHECK-LABEL: func.func @f
// CHECK:         %[[OUT:.*]] = nd.constant
// CHECK:         %[[R:.*]] = nd.reduce %x init %s dims [0] by (%[[A:.*]]: tensor<f32>, %[[B:.*]]: tensor<f32>) {
// CHECK-NEXT:      %[[IN:.*]] = nd.constant
// CHECK-NEXT:      %[[C:.*]] = nd.mul %[[A]], %[[IN]]
// CHECK-NEXT:      %[[D:.*]] = nd.add %[[C]], %[[C]]
// CHECK-NEXT:      %[[E:.*]] = nd.sub %[[D]], %[[B]]
// CHECK-NEXT:      nd.yield %[[E]]
// CHECK-NOT:     nd.reduce
// CHECK:         return %[[R]], %[[R]], %[[OUT]]
func.func @f(%x: tensor<3xf32>, %s: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %out = nd.constant splat(3.0 : f32) : tensor<f32>
  %0 = nd.reduce %x init %s dims [0] by (%a: tensor<f32>, %b: tensor<f32>) {
    %k = nd.constant splat(3.0 : f32) : tensor<f32>
    %c = nd.mul %a, %k : tensor<f32>
    %d = nd.mul %a, %k : tensor<f32>
    %e = nd.add %c, %d : tensor<f32>
    %f = nd.sub %e, %b : tensor<f32>
    nd.yield %f : tensor<f32>
  } : tensor<3xf32>, tensor<f32> -> tensor<f32>
  %1 = nd.reduce %x init %s dims [0] by (%p: tensor<f32>, %q: tensor<f32>) {
    %l = nd.constant splat(3.0 : f32) : tensor<f32>
    %t = nd.mul %p, %l : tensor<f32>
    %u = nd.add %t, %t : tensor<f32>
    %v = nd.sub %u, %q : tensor<f32>
    nd.yield %v : tensor<f32>
  } : tensor<3xf32>, tensor<f32> -> tensor<f32>
  return %0, %1, %out : tensor<f32>, tensor<f32>, tensor<f32>
}
