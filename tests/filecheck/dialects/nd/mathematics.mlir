// RUN: gradir-opt %s | gradir-opt | filecheck %s
// RUN: gradir-opt %s --print-op-generic | gradir-opt | filecheck %s

// CHECK-LABEL: func.func @rounding
func.func @rounding(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK: nd.round_even %x : tensor<2x3xf32>
  %0 = nd.round_even %x : tensor<2x3xf32>
  // CHECK: nd.round_away %0 : tensor<2x3xf32>
  %1 = nd.round_away %0 : tensor<2x3xf32>
  // CHECK: nd.trunc %1 : tensor<2x3xf32>
  %2 = nd.trunc %1 : tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}
