// RUN: gradir-opt %s | gradir-opt | filecheck %s
// RUN: gradir-opt %s --print-op-generic | gradir-opt | filecheck %s

// CHECK-LABEL: func.func @factors(
func.func @factors(%a: tensor<2x3x3xf32>, %b: tensor<2x3x1xf32>, %t: tensor<?x4xf64, ["m", ""]>, %z: tensor<3x3xcomplex<f32>>) {
  // CHECK: %l = nd.cholesky %a lower : tensor<2x3x3xf32> -> tensor<2x3x3xf32>
  %l = nd.cholesky %a lower : tensor<2x3x3xf32> -> tensor<2x3x3xf32>
  // CHECK: %u = nd.cholesky %a {gradir.implementation = "loops"} : tensor<2x3x3xf32> -> tensor<2x3x3xf32>
  %u = nd.cholesky %a {gradir.implementation = "loops"} : tensor<2x3x3xf32> -> tensor<2x3x3xf32>
  // CHECK: %x = nd.triangular_solve %l, %b left lower unit_diagonal transpose : tensor<2x3x3xf32>, tensor<2x3x1xf32> -> tensor<2x3x1xf32>
  %x = nd.triangular_solve %l, %b left lower unit_diagonal transpose : tensor<2x3x3xf32>, tensor<2x3x1xf32> -> tensor<2x3x1xf32>
  // CHECK: %y = nd.triangular_solve %z, %z adjoint : tensor<3x3xcomplex<f32>>, tensor<3x3xcomplex<f32>> -> tensor<3x3xcomplex<f32>>
  %y = nd.triangular_solve %z, %z adjoint : tensor<3x3xcomplex<f32>>, tensor<3x3xcomplex<f32>> -> tensor<3x3xcomplex<f32>>
  // CHECK: %f, %p, %o = nd.lu %a : tensor<2x3x3xf32> -> tensor<2x3x3xf32>, tensor<2x3xi32>, tensor<2x3xi32>
  %f, %p, %o = nd.lu %a : tensor<2x3x3xf32> -> tensor<2x3x3xf32>, tensor<2x3xi32>, tensor<2x3xi32>
  // CHECK: %q, %r = nd.qr %t full : tensor<?x4xf64, ["m", ""]> -> tensor<?x?xf64, ["m", "m"]>, tensor<?x4xf64, ["m", ""]>
  %q, %r = nd.qr %t full : tensor<?x4xf64, ["m", ""]> -> tensor<?x?xf64, ["m", "m"]>, tensor<?x4xf64, ["m", ""]>
  // CHECK: %w, %v = nd.eigh %z lower : tensor<3x3xcomplex<f32>> -> tensor<3xf32>, tensor<3x3xcomplex<f32>>
  %w, %v = nd.eigh %z lower : tensor<3x3xcomplex<f32>> -> tensor<3xf32>, tensor<3x3xcomplex<f32>>
  // CHECK: %0, %s, %1 = nd.svd %b : tensor<2x3x1xf32> -> tensor<2x3x1xf32>, tensor<2x1xf32>, tensor<2x1x1xf32>
  %0, %s, %1 = nd.svd %b : tensor<2x3x1xf32> -> tensor<2x3x1xf32>, tensor<2x1xf32>, tensor<2x1x1xf32>
  return
}
