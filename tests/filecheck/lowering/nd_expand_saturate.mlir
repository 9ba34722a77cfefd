// RUN: gradir-opt %s -p nd-expand --check-semantics | filecheck %s
// RUN: gradir-opt %s | gradir-opt | filecheck %s --check-prefix=TEXT

// CHECK-LABEL: func.func @narrow
func.func @narrow(%x: tensor<4xf32>) -> tensor<4xf8E4M3FN> {
  // TEXT: nd.convert %x saturate : tensor<4xf32> -> tensor<4xf8E4M3FN>
  // CHECK: %[[LOW:.*]] = nd.constant {{.*}}-4.48{{.*}}e+02
  // CHECK: %[[HIGH:.*]] = nd.constant {{.*}}4.48{{.*}}e+02
  // CHECK: %[[C:.*]] = nd.clamp %[[LOW]], %x, %[[HIGH]] : tensor<4xf32>
  // CHECK: nd.convert %[[C]] : tensor<4xf32> -> tensor<4xf8E4M3FN>
  %0 = nd.convert %x saturate : tensor<4xf32> -> tensor<4xf8E4M3FN>
  return %0 : tensor<4xf8E4M3FN>
}

// Integers that the result holds are left alone.
// CHECK-LABEL: func.func @small
func.func @small(%x: tensor<4xi16>) -> tensor<4xf16> {
  // CHECK-NOT: nd.clamp
  // CHECK: nd.convert %x : tensor<4xi16> -> tensor<4xf16>
  %0 = nd.convert %x saturate : tensor<4xi16> -> tensor<4xf16>
  return %0 : tensor<4xf16>
}
