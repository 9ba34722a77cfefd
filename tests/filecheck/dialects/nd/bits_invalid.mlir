// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2xi1>) {
  // expected-error@+1 {{nd.bitcast_convert: operand must have a float type or an integer wider than i1, found i1}}
  %0 = nd.bitcast_convert %x : tensor<2xi1> -> tensor<2xi8>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.bitcast_convert: result must have shape [2, 3], found [3, 2]}}
  %0 = nd.bitcast_convert %x : tensor<2x3xf32> -> tensor<3x2xi32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.bitcast_convert: result must have shape [2, 3, 4], found [2, 3]}}
  %0 = nd.bitcast_convert %x : tensor<2x3xf32> -> tensor<2x3xi8>
  return
}

// -----

func.func @f(%x: tensor<2x3xi8>) {
  // expected-error@+1 {{nd.bitcast_convert: 4 elements of i8 make one of f32: the last dimension must have that size, found tensor<2x3xi8>}}
  %0 = nd.bitcast_convert %x : tensor<2x3xi8> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<f16>) {
  // expected-error@+1 {{nd.bitcast_convert: 2 elements of f16 make one of f32: the last dimension must have that size, found tensor<f16>}}
  %0 = nd.bitcast_convert %x : tensor<f16> -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.reduce_precision: exponent[0] must be at least 1, found 0}}
  %0 = nd.reduce_precision %x exponent 0 mantissa 3 : tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.reduce_precision: mantissa[0] must be at least 0, found -1}}
  %0 = nd.reduce_precision %x exponent 5 mantissa -1 : tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xi32>) {
  // expected-error@+1 {{nd.reduce_precision: operand must have a float type of 16 bits or more (f64, f32, f16, bf16), found i32}}
  %0 = nd.reduce_precision %x exponent 5 mantissa 10 : tensor<2xi32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>, %y: tensor<3xf32>) {
  // expected-error@+1 {{nd.next_after: shapes differ: lhs has [2], rhs has [3]}}
  %0 = "nd.next_after"(%x, %y) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xi32>) {
  // expected-error@+1 {{nd.next_after: lhs must have a float type of 16 bits or more (f64, f32, f16, bf16), found i32}}
  %0 = nd.next_after %x, %x : tensor<2xi32>
  return
}
