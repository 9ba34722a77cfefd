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

// CHECK-LABEL: func.func @smooth
func.func @smooth(%x: tensor<?xf64, ["n"]>) -> tensor<?xf64, ["n"]> {
  // CHECK: nd.cbrt %x : tensor<?xf64, ["n"]>
  %0 = nd.cbrt %x : tensor<?xf64, ["n"]>
  // CHECK: nd.tan %x : tensor<?xf64, ["n"]>
  %1 = nd.tan %x : tensor<?xf64, ["n"]>
  // CHECK: nd.asin %x : tensor<?xf64, ["n"]>
  %2 = nd.asin %x : tensor<?xf64, ["n"]>
  // CHECK: nd.acos %x : tensor<?xf64, ["n"]>
  %3 = nd.acos %x : tensor<?xf64, ["n"]>
  // CHECK: nd.atan %x : tensor<?xf64, ["n"]>
  %4 = nd.atan %x : tensor<?xf64, ["n"]>
  // CHECK: nd.sinh %x : tensor<?xf64, ["n"]>
  %5 = nd.sinh %x : tensor<?xf64, ["n"]>
  // CHECK: nd.cosh %x : tensor<?xf64, ["n"]>
  %6 = nd.cosh %x : tensor<?xf64, ["n"]>
  // CHECK: nd.asinh %x : tensor<?xf64, ["n"]>
  %7 = nd.asinh %x : tensor<?xf64, ["n"]>
  // CHECK: nd.acosh %x : tensor<?xf64, ["n"]>
  %8 = nd.acosh %x : tensor<?xf64, ["n"]>
  // CHECK: nd.atanh %x : tensor<?xf64, ["n"]>
  %9 = nd.atanh %x : tensor<?xf64, ["n"]>
  // CHECK: nd.erfc %x : tensor<?xf64, ["n"]>
  %10 = nd.erfc %x : tensor<?xf64, ["n"]>
  // CHECK: nd.erf_inv %x : tensor<?xf64, ["n"]>
  %11 = nd.erf_inv %x : tensor<?xf64, ["n"]>
  return %9 : tensor<?xf64, ["n"]>
}

// CHECK-LABEL: func.func @classes
func.func @classes(%x: tensor<2xbf16>) -> tensor<2xi1> {
  // CHECK: nd.is_nan %x : tensor<2xbf16> -> tensor<2xi1>
  %0 = nd.is_nan %x : tensor<2xbf16> -> tensor<2xi1>
  // CHECK: nd.is_inf %x : tensor<2xbf16> -> tensor<2xi1>
  %1 = nd.is_inf %x : tensor<2xbf16> -> tensor<2xi1>
  return %1 : tensor<2xi1>
}

// CHECK-LABEL: func.func @bits
func.func @bits(%x: tensor<2xui8>) -> tensor<2xui8> {
  // CHECK: nd.popcnt %x : tensor<2xui8>
  %0 = nd.popcnt %x : tensor<2xui8>
  // CHECK: nd.clz %0 : tensor<2xui8>
  %1 = nd.clz %0 : tensor<2xui8>
  return %1 : tensor<2xui8>
}
