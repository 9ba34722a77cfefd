// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<3x4xf32>) {
  // expected-error@+1 {{nd.cholesky: operand must be square in its last two dimensions, found [3, 4]}}
  %0 = nd.cholesky %x lower : tensor<3x4xf32> -> tensor<3x4xf32>
  return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error@+1 {{nd.cholesky: operand must have at least 2 dimensions, found [3]}}
  %0 = nd.cholesky %x lower : tensor<3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<3x3xbf16>) {
  // expected-error@+1 {{nd.cholesky: operand must have one of f32, f64, complex<f32>, complex<f64>, found bf16}}
  %0 = nd.cholesky %x lower : tensor<3x3xbf16> -> tensor<3x3xbf16>
  return
}

// -----

func.func @f(%a: tensor<3x3xf32>, %b: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.triangular_solve: a has 3 rows, b has 2 rows}}
  %0 = nd.triangular_solve %a, %b left : tensor<3x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%a: tensor<3x3xf32>, %b: tensor<5x3x3xf32>) {
  // expected-error@+1 {{nd.triangular_solve: batch dimensions differ: a has [], b has [5]}}
  %0 = nd.triangular_solve %a, %b left : tensor<3x3xf32>, tensor<5x3x3xf32> -> tensor<5x3x3xf32>
  return
}

// -----

func.func @f(%a: tensor<3x3xf32>, %b: tensor<3x3xf64>) {
  // expected-error@+1 {{nd.triangular_solve: element types differ: b has f64, a has f32}}
  %0 = nd.triangular_solve %a, %b left : tensor<3x3xf32>, tensor<3x3xf64> -> tensor<3x3xf64>
  return
}

// -----

func.func @f(%a: tensor<3x3xf32>) {
  // expected-error@+1 {{nd.triangular_solve: expected transpose or adjoint, found both}}
  %0 = nd.triangular_solve %a, %a left transpose adjoint : tensor<3x3xf32>, tensor<3x3xf32> -> tensor<3x3xf32>
  return
}

// -----

func.func @f(%a: tensor<4x3xf32>) {
  // expected-error@+1 {{nd.lu: pivots must have shape [3], found [4]}}
  %0, %1, %2 = nd.lu %a : tensor<4x3xf32> -> tensor<4x3xf32>, tensor<4xi32>, tensor<4xi32>
  return
}

// -----

func.func @f(%a: tensor<4x3xf32>) {
  // expected-error@+1 {{nd.lu: pivots must have elements of type i32, found i64}}
  %0, %1, %2 = nd.lu %a : tensor<4x3xf32> -> tensor<4x3xf32>, tensor<3xi64>, tensor<4xi32>
  return
}

// -----

func.func @f(%a: tensor<4x3xf32>) {
  // expected-error@+1 {{nd.qr: q must have shape [4, 3], found [4, 4]}}
  %0, %1 = nd.qr %a : tensor<4x3xf32> -> tensor<4x4xf32>, tensor<4x3xf32>
  return
}

// -----

func.func @f(%a: tensor<3x3xcomplex<f32>>) {
  // expected-error@+1 {{nd.eigh: values must have elements of type f32, found complex<f32>}}
  %0, %1 = nd.eigh %a lower : tensor<3x3xcomplex<f32>> -> tensor<3xcomplex<f32>>, tensor<3x3xcomplex<f32>>
  return
}

// -----

func.func @f(%a: tensor<4x3xf32>) {
  // expected-error@+1 {{nd.svd: vh must have shape [3, 3], found [4, 3]}}
  %0, %1, %2 = nd.svd %a full : tensor<4x3xf32> -> tensor<4x4xf32>, tensor<3xf32>, tensor<4x3xf32>
  return
}
