// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%q: tensor<2x3x4xf32>) {
  // expected-error@+1 {{nd.attention: q must have rank 4, [B, T, H, D], found tensor<2x3x4xf32>}}
  %0 = nd.attention %q, %q, %q scale 1.0 : tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  return
}

// -----

func.func @f(%q: tensor<1x3x4x8xf32>, %k: tensor<1x5x3x8xf32>) {
  // expected-error@+1 {{nd.attention: the 4 heads of q must be a multiple of the 3 heads of k and v}}
  %0 = nd.attention %q, %k, %k scale 1.0 : tensor<1x3x4x8xf32>, tensor<1x5x3x8xf32>, tensor<1x5x3x8xf32> -> tensor<1x3x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x3x4x8xf32>, %k: tensor<1x5x4x7xf32>) {
  // expected-error@+1 {{nd.attention: k must have shape [1, 5, 4, 8], found [1, 5, 4, 7]}}
  %0 = nd.attention %q, %k, %k scale 1.0 : tensor<1x3x4x8xf32>, tensor<1x5x4x7xf32>, tensor<1x5x4x7xf32> -> tensor<1x3x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x3x4x8xf32>, %m: tensor<3x3xi1>) {
  // expected-error@+1 {{nd.attention: mask must have shape [1, 4, 3, 3], found [3, 3]}}
  %0 = nd.attention %q, %q, %q mask %m scale 1.0 : tensor<1x3x4x8xf32>, tensor<1x3x4x8xf32>, tensor<1x3x4x8xf32>, tensor<3x3xi1> -> tensor<1x3x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x3x4x8xf32>, %b: tensor<1x4x3x3xf64>) {
  // expected-error@+1 {{nd.attention: element types differ: bias has f64, q has f32}}
  %0 = nd.attention %q, %q, %q bias %b causal scale 1.0 : tensor<1x3x4x8xf32>, tensor<1x3x4x8xf32>, tensor<1x3x4x8xf32>, tensor<1x4x3x3xf64> -> tensor<1x3x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x3x4x8xf32>) {
  // expected-error@+1 {{nd.attention: result must have shape [1, 3, 4, 8], found [1, 3, 4, 4]}}
  %0 = nd.attention %q, %q, %q scale 1.0 : tensor<1x3x4x8xf32>, tensor<1x3x4x8xf32>, tensor<1x3x4x8xf32> -> tensor<1x3x4x4xf32>
  return
}
