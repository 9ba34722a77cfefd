// RUN: gradir-opt %s | gradir-opt | filecheck %s
// RUN: gradir-opt %s --print-op-generic | gradir-opt | filecheck %s
// RUN: gradir-opt %s -p nd-expand --check-semantics | filecheck %s --check-prefix=EXPAND

// CHECK-LABEL: func.func @whole
// EXPAND-LABEL: func.func @whole
func.func @whole(%x: tensor<2x3xf32>, %s: tensor<f32>, %z: tensor<i8>) -> tensor<2x3xf32> {
  // CHECK: %[[Q:.*]] = nd.quantize %x, %s, %z : tensor<2x3xf32>, tensor<f32>, tensor<i8> -> tensor<2x3xi8>
  // EXPAND: nd.div
  // EXPAND: nd.clamp
  // EXPAND: nd.round_even
  // EXPAND: nd.convert {{.*}} -> tensor<2x3xi8>
  %q = nd.quantize %x, %s, %z : tensor<2x3xf32>, tensor<f32>, tensor<i8> -> tensor<2x3xi8>
  // CHECK: nd.dequantize %[[Q]], %s, %z : tensor<2x3xi8>, tensor<f32>, tensor<i8> -> tensor<2x3xf32>
  %r = nd.dequantize %q, %s, %z : tensor<2x3xi8>, tensor<f32>, tensor<i8> -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @by_axis
func.func @by_axis(%x: tensor<?x3xf32, ["n", ""]>, %s: tensor<3xf32>, %z: tensor<3xi8>) -> tensor<?x3xi8, ["n", ""]> {
  // CHECK: nd.quantize %x, %s, %z axis 1 range [-127, 127] : tensor<?x3xf32, ["n", ""]>, tensor<3xf32>, tensor<3xi8> -> tensor<?x3xi8, ["n", ""]>
  %q = nd.quantize %x, %s, %z axis 1 range [-127, 127] : tensor<?x3xf32, ["n", ""]>, tensor<3xf32>, tensor<3xi8> -> tensor<?x3xi8, ["n", ""]>
  return %q : tensor<?x3xi8, ["n", ""]>
}
