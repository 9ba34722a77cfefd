// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2xi32>) {
  // expected-error@+1 {{nd.trunc: operand must have a float type (f64, f32, f16, bf16, f8E4M3FN, f8E5M2), found i32}}
  %0 = nd.trunc %x : tensor<2xi32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.round_even: shapes differ: operand has [2], result has [3]}}
  %0 = "nd.round_even"(%x) : (tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.is_nan: result must have i1, found i8}}
  %0 = nd.is_nan %x : tensor<2xf32> -> tensor<2xi8>
  return
}

// -----

func.func @f(%x: tensor<2xi32>) {
  // expected-error@+1 {{nd.is_inf: operand must have a float type (f64, f32, f16, bf16, f8E4M3FN, f8E5M2), found i32}}
  %0 = nd.is_inf %x : tensor<2xi32> -> tensor<2xi1>
  return
}

// -----

func.func @f(%x: tensor<2xi1>) {
  // expected-error@+1 {{nd.popcnt: operand must have an integer wider than i1, found i1}}
  %0 = nd.popcnt %x : tensor<2xi1>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.clz: operand must have an integer wider than i1, found f32}}
  %0 = nd.clz %x : tensor<2xf32>
  return
}
