// RUN: gradir-opt %s | gradir-opt | filecheck %s
// RUN: gradir-opt %s --print-op-generic | gradir-opt | filecheck %s

// CHECK-LABEL: func.func @parts(
func.func @parts(%z: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  // CHECK: %x = nd.real %z : tensor<2xcomplex<f32>>
  %x = nd.real %z : tensor<2xcomplex<f32>>
  // CHECK: %y = nd.imag %z : tensor<2xcomplex<f32>>
  %y = nd.imag %z : tensor<2xcomplex<f32>>
  // CHECK: %a = nd.abs %z : tensor<2xcomplex<f32>>
  %a = nd.abs %z : tensor<2xcomplex<f32>>
  // CHECK: %s = nd.add %x, %a : tensor<2xf32>
  %s = nd.add %x, %a : tensor<2xf32>
  // CHECK: %w = nd.complex %s, %y : tensor<2xf32>
  %w = nd.complex %s, %y : tensor<2xf32>
  // CHECK: %c = nd.conj %w : tensor<2xcomplex<f32>>
  %c = nd.conj %w : tensor<2xcomplex<f32>>
  return %c : tensor<2xcomplex<f32>>
}

// CHECK-LABEL: func.func @constants(
func.func @constants() -> (tensor<2xcomplex<f32>>, tensor<2xcomplex<f64>>, tensor<0xcomplex<f32>>) {
  // CHECK: nd.constant splat((1.000000e+00,-2.000000e+00) : complex<f32>) : tensor<2xcomplex<f32>>
  %a = nd.constant splat((1.0, -2.0) : complex<f32>) : tensor<2xcomplex<f32>>
  // CHECK: nd.constant dense<[(-0.000000e+00,2.000000e+00), (0x7ff8000000000000,1.000000e+00)]> : tensor<2xcomplex<f64>>
  %b = nd.constant dense<[(-0.0, 2), (0x7FF8000000000000, 1.0)]> : tensor<2xcomplex<f64>>
  // CHECK: nd.constant dense<> : tensor<0xcomplex<f32>>
  %c = nd.constant dense<> : tensor<0xcomplex<f32>>
  return %a, %b, %c : tensor<2xcomplex<f32>>, tensor<2xcomplex<f64>>, tensor<0xcomplex<f32>>
}

// CHECK-LABEL: func.func @resource(
func.func @resource() -> tensor<2xcomplex<f32>> {
  // CHECK: nd.constant resource(z_dda7f88dd4ba37ab) : tensor<2xcomplex<f32>>
  %a = nd.constant resource(z_dda7f88dd4ba37ab) : tensor<2xcomplex<f32>>
  return %a : tensor<2xcomplex<f32>>
}

// CHECK: z_dda7f88dd4ba37ab: "complex64 2 AACAPwAAAEAAAEBAAACAQA=="
{-#
  dialect_resources: { nd: { z_dda7f88dd4ba37ab: "complex64 2 AACAPwAAAEAAAEBAAACAQA==" } }
#-}
