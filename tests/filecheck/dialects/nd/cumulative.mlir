// RUN: gradir-opt %s | gradir-opt | filecheck %s
// RUN: gradir-opt %s --print-op-generic | gradir-opt | filecheck %s

// CHECK-LABEL: func.func @f
func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK: nd.cumsum %x dim 0 : tensor<2x3xf32>
  %0 = nd.cumsum %x dim 0 : tensor<2x3xf32>
  // CHECK: nd.cumprod %0 dim 1 reverse : tensor<2x3xf32>
  %1 = nd.cumprod %0 dim 1 reverse : tensor<2x3xf32>
  // CHECK: nd.cummax %1 dim 1 exclusive : tensor<2x3xf32>
  %2 = nd.cummax %1 dim 1 exclusive : tensor<2x3xf32>
  // CHECK: nd.cummin %2 dim 0 reverse exclusive : tensor<2x3xf32>
  %3 = nd.cummin %2 dim 0 reverse exclusive : tensor<2x3xf32>
  return %3 : tensor<2x3xf32>
}
