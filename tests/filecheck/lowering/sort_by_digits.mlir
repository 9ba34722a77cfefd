// RUN: gradir-opt %s -p 'nd-expand,convert-nd-to-linalg' | filecheck %s

// Long rows with one key are dealt by digits; two keys are merged.
// CHECK-LABEL: func.func private @deal_0
// CHECK-SAME:    tensor<1x256xi32>
// CHECK:         arith.shrui
// CHECK-LABEL: func.func private @sort_0
// CHECK-LABEL: func.func @long
func.func @long(%x: tensor<1x260xf32>, %y: tensor<1x260xi32>) -> (tensor<1x260xf32>, tensor<1x260xf32>) {
  %s = nd.sort %x dim 1 : tensor<1x260xf32>
  %a, %b = nd.sort %x, %y dim 1 keys 2 : tensor<1x260xf32>, tensor<1x260xi32>
  return %s, %a : tensor<1x260xf32>, tensor<1x260xf32>
}
