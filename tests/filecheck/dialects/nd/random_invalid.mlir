// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%k: tensor<4xui32>) {
  // expected-error@+1 {{nd.random_bits: the key must be tensor<2xui32>, found tensor<4xui32>}}
  %0 = nd.random_bits %k : tensor<4xui32> -> tensor<3xui32>
  return
}

// -----

func.func @f(%k: tensor<2xui32>) {
  // expected-error@+1 {{nd.random_bits: the result must have unsigned elements (ui8, ui16, ui32, ui64), found i32}}
  %0 = nd.random_bits %k : tensor<2xui32> -> tensor<3xi32>
  return
}

// -----

func.func @f(%k: tensor<2xui32>) {
  // expected-error@+1 {{nd.random_bits: result must have an integer wider than i1, found f32}}
  %0 = nd.random_bits %k : tensor<2xui32> -> tensor<3xf32>
  return
}

// -----

func.func @f(%k: tensor<2xui32>) {
  // expected-error@+1 {{nd.random_bits: result has 1 run-time sizes, 0 are given after `sizes`}}
  %0 = nd.random_bits %k : tensor<2xui32> -> tensor<?xui32>
  return
}

// -----

func.func @f(%k: tensor<2xui32>, %x: tensor<3xi32>) {
  // expected-error@+1 {{nd.threefry2x32: the counter must have ui32 elements, found i32}}
  %0, %1 = nd.threefry2x32 %k, %x, %x : tensor<2xui32>, tensor<3xi32>
  return
}

// -----

func.func @f(%k: tensor<2xui32>, %x: tensor<3xui32>, %y: tensor<4xui32>) {
  // expected-error@+1 {{nd.threefry2x32: shapes differ: word 0 has [3], word 1 has [4]; broadcasting is explicit, see nd.broadcast}}
  %0, %1 = "nd.threefry2x32"(%k, %x, %y) : (tensor<2xui32>, tensor<3xui32>, tensor<4xui32>) -> (tensor<3xui32>, tensor<3xui32>)
  return
}
