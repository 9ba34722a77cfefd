// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @order(%z: tensor<2xcomplex<f32>>) -> tensor<2xi1> {
  // expected-error@+1 {{nd.compare: lhs must have a float or integer type, found complex<f32>}}
  %r = nd.compare lt, %z, %z : tensor<2xcomplex<f32>>
  return %r : tensor<2xi1>
}

// -----

func.func @max(%z: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  // expected-error@+1 {{nd.max: lhs must have a float or integer type, found complex<f32>}}
  %r = nd.max %z, %z : tensor<2xcomplex<f32>>
  return %r : tensor<2xcomplex<f32>>
}

// -----

func.func @softmax(%z: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  // expected-error@+1 {{nd.softmax: operand must have a float type (f64, f32, f16, bf16, f8E4M3FN, f8E5M2), found complex<f32>}}
  %r = nd.softmax %z dim 0 : tensor<2xcomplex<f32>>
  return %r : tensor<2xcomplex<f32>>
}

// -----

func.func @half(%x: tensor<2xf16>) -> tensor<2xf16> {
  // expected-error@+1 {{nd.complex: no complex numbers have parts of type f16}}
  %r = nd.complex %x, %x : tensor<2xf16>
  return %x : tensor<2xf16>
}

// -----

func.func @real(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{nd.real: operand must have a complex type (complex<f32>, complex<f64>), found f32}}
  %r = nd.real %x : tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

func.func @conj(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{nd.conj: operand must have a complex type (complex<f32>, complex<f64>), found f32}}
  %r = nd.conj %x : tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

func.func @part(%z: tensor<2xcomplex<f32>>) -> tensor<2xf64> {
  // expected-error@+1 {{nd.real: result must have f32, found f64}}
  %r = "nd.real"(%z) : (tensor<2xcomplex<f32>>) -> tensor<2xf64>
  return %r : tensor<2xf64>
}

// -----

func.func @product(%z: tensor<2x2xcomplex<f32>>, %x: tensor<2x2xf32>) -> tensor<2x2xcomplex<f32>> {
  // expected-error@+1 {{nd.dot_general: element types do not fit: lhs has complex<f32>, rhs has f32, result has complex<f32>}}
  %r = nd.dot_general %z, %x contract [1] x [0] : tensor<2x2xcomplex<f32>>, tensor<2x2xf32> -> tensor<2x2xcomplex<f32>>
  return %r : tensor<2x2xcomplex<f32>>
}

// -----

func.func @literal() -> tensor<2xcomplex<f32>> {
  // expected-error@+1 {{Expected a complex number, (real, imaginary)}}
  %r = nd.constant dense<[1.0, 2.0]> : tensor<2xcomplex<f32>>
  return %r : tensor<2xcomplex<f32>>
}

// -----

func.func @literal() -> tensor<2xf32> {
  // expected-error@+1 {{No conversion from complex to float}}
  %r = nd.constant dense<[(1.0, 2.0), (1.0, 2.0)]> : tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

func.func @literal() -> tensor<2xi32> {
  // expected-error@+1 {{Expected integer value, found a complex number}}
  %r = nd.constant dense<[(1, 2), (1, 2)]> : tensor<2xi32>
  return %r : tensor<2xi32>
}

// -----

func.func @splat() -> tensor<2xcomplex<f32>> {
  // expected-error@+1 {{expected complex<f32> or complex<f64>, found complex<f16>}}
  %r = nd.constant splat((1.0, 2.0) : complex<f16>) : tensor<2xcomplex<f32>>
  return %r : tensor<2xcomplex<f32>>
}
