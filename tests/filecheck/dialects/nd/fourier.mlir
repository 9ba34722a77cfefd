// RUN: gradir-opt %s | gradir-opt | filecheck %s
// RUN: gradir-opt %s --print-op-generic | gradir-opt | filecheck %s

// CHECK-LABEL: func.func @transforms(
func.func @transforms(%x: tensor<2x5xf32>, %z: tensor<2x4xcomplex<f64>>) {
  // CHECK: %0 = nd.fft %z dims 2 : tensor<2x4xcomplex<f64>> -> tensor<2x4xcomplex<f64>>
  %0 = nd.fft %z dims 2 : tensor<2x4xcomplex<f64>> -> tensor<2x4xcomplex<f64>>
  // CHECK: %1 = nd.ifft %0 dims 1 : tensor<2x4xcomplex<f64>> -> tensor<2x4xcomplex<f64>>
  %1 = nd.ifft %0 dims 1 : tensor<2x4xcomplex<f64>> -> tensor<2x4xcomplex<f64>>
  // CHECK: %2 = nd.rfft %x dims 1 : tensor<2x5xf32> -> tensor<2x3xcomplex<f32>>
  %2 = nd.rfft %x dims 1 : tensor<2x5xf32> -> tensor<2x3xcomplex<f32>>
  // CHECK: %3 = nd.irfft %1 dims 1 : tensor<2x4xcomplex<f64>> -> tensor<2x7xf64>
  %3 = nd.irfft %1 dims 1 : tensor<2x4xcomplex<f64>> -> tensor<2x7xf64>
  return
}
