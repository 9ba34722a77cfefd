// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2xi32>) {
  // expected-error@+1 {{nd.lgamma: operand must have a float type (f64, f32, f16, bf16, f8E4M3FN, f8E5M2), found i32}}
  %0 = nd.lgamma %x : tensor<2xi32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.bessel_i1e: shapes differ: operand has [2], result has [3]}}
  %0 = "nd.bessel_i1e"(%x) : (tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<2xi64>) {
  // expected-error@+1 {{nd.zeta: lhs must have a float type (f64, f32, f16, bf16, f8E4M3FN, f8E5M2), found i64}}
  %0 = nd.zeta %x, %x : tensor<2xi64>
  return
}

// -----

func.func @f(%x: tensor<2xf32>, %y: tensor<2xf64>) {
  // expected-error@+1 {{nd.polygamma: element types differ: rhs has f64, lhs has f32}}
  %0 = "nd.polygamma"(%x, %y) : (tensor<2xf32>, tensor<2xf64>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>, %y: tensor<2x1xf32>) {
  // expected-error@+1 {{nd.fma: shapes differ: a has [2], c has [2, 1]; broadcasting is explicit, see nd.broadcast}}
  %0 = "nd.fma"(%x, %x, %y) : (tensor<2xf32>, tensor<2xf32>, tensor<2x1xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xi8>) {
  // expected-error@+1 {{nd.fma: a must have a float type (f64, f32, f16, bf16, f8E4M3FN, f8E5M2), found i8}}
  %0 = nd.fma %x, %x, %x : tensor<2xi8>
  return
}
