// RUN: gradir-opt %s | gradir-opt | filecheck %s
// RUN: gradir-opt %s --print-op-generic | gradir-opt | filecheck %s

// CHECK-LABEL: func.func @bitcasts
func.func @bitcasts(%x: tensor<2x3xf32>, %y: tensor<?x4xi8, ["n", ""]>) -> tensor<?xf32, ["n"]> {
  // CHECK: nd.bitcast_convert %x : tensor<2x3xf32> -> tensor<2x3xui32>
  %0 = nd.bitcast_convert %x : tensor<2x3xf32> -> tensor<2x3xui32>
  // CHECK: nd.bitcast_convert %x : tensor<2x3xf32> -> tensor<2x3x2xbf16>
  %1 = nd.bitcast_convert %x : tensor<2x3xf32> -> tensor<2x3x2xbf16>
  // CHECK: nd.bitcast_convert %y : tensor<?x4xi8, ["n", ""]> -> tensor<?xf32, ["n"]>
  %2 = nd.bitcast_convert %y : tensor<?x4xi8, ["n", ""]> -> tensor<?xf32, ["n"]>
  return %2 : tensor<?xf32, ["n"]>
}

// CHECK-LABEL: func.func @rounded
func.func @rounded(%x: tensor<?xf64, ["n"]>) -> tensor<?xf64, ["n"]> {
  // CHECK: nd.reduce_precision %x exponent 5 mantissa 10 : tensor<?xf64, ["n"]>
  %0 = nd.reduce_precision %x exponent 5 mantissa 10 : tensor<?xf64, ["n"]>
  // CHECK: nd.next_after %0, %x : tensor<?xf64, ["n"]>
  %1 = nd.next_after %0, %x : tensor<?xf64, ["n"]>
  return %1 : tensor<?xf64, ["n"]>
}
