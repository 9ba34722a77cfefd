// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x4xf32>, %w: tensor<4x6xf32>) {
  // expected-error@+1 {{nd.conv_general: lhs must have rank 3 or more (batch, spatial dimensions, channels), found 2}}
  %0 = nd.conv_general %x, %w : tensor<2x4xf32>, tensor<4x6xf32> -> tensor<2x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5x5x4xf32>, %w: tensor<3x4x6xf32>) {
  // expected-error@+1 {{nd.conv_general: ranks differ: lhs has 4, rhs has 3}}
  %0 = nd.conv_general %x, %w : tensor<2x5x5x4xf32>, tensor<3x4x6xf32> -> tensor<2x3x3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5x5x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{nd.conv_general: strides has 1 numbers, expected 2, one per spatial dimension}}
  %0 = nd.conv_general %x, %w strides [1] : tensor<2x5x5x4xf32>, tensor<3x3x4x6xf32> -> tensor<2x3x3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5x5x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{nd.conv_general: strides[1] must be at least 1, found 0}}
  %0 = nd.conv_general %x, %w strides [1, 0] : tensor<2x5x5x4xf32>, tensor<3x3x4x6xf32> -> tensor<2x3x3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5x5x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{nd.conv_general: padding has 2 numbers, expected 4, low and high per spatial dimension}}
  %0 = nd.conv_general %x, %w padding [1, 1] : tensor<2x5x5x4xf32>, tensor<3x3x4x6xf32> -> tensor<2x3x3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5x5x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{nd.conv_general: rhs_dilation[0] must be at least 1, found 0}}
  %0 = nd.conv_general %x, %w rhs_dilation [0, 1] : tensor<2x5x5x4xf32>, tensor<3x3x4x6xf32> -> tensor<2x3x3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5x5x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{nd.conv_general: result must have shape [2, 3, 3, 6], found [2, 4, 3, 6]}}
  %0 = nd.conv_general %x, %w : tensor<2x5x5x4xf32>, tensor<3x3x4x6xf32> -> tensor<2x4x3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5x5x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{nd.conv_general: lhs channels must be a multiple of 3 groups, found 4}}
  %0 = nd.conv_general %x, %w feature_groups 3 : tensor<2x5x5x4xf32>, tensor<3x3x4x6xf32> -> tensor<2x3x3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5x5x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{nd.conv_general: rhs output channels must be a multiple of 4 groups, found 6}}
  %0 = nd.conv_general %x, %w feature_groups 4 : tensor<2x5x5x4xf32>, tensor<3x3x4x6xf32> -> tensor<2x3x3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5x5x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{nd.conv_general: channels differ: lhs has 4 in 2 feature groups, rhs expects 4 per group}}
  %0 = nd.conv_general %x, %w feature_groups 2 : tensor<2x5x5x4xf32>, tensor<3x3x4x6xf32> -> tensor<2x3x3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5x5x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{nd.conv_general: lhs batch must be a multiple of 3 groups, found 2}}
  %0 = nd.conv_general %x, %w batch_groups 3 : tensor<2x5x5x4xf32>, tensor<3x3x4x6xf32> -> tensor<2x3x3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5x5x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{nd.conv_general: only one of feature_groups and batch_groups may exceed 1, found 2 and 2}}
  %0 = nd.conv_general %x, %w feature_groups 2 batch_groups 2 : tensor<2x5x5x4xf32>, tensor<3x3x4x6xf32> -> tensor<2x3x3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5x5x4xf32>, %w: tensor<3x3x4x6xf32>) {
  // expected-error@+1 {{nd.conv_general: feature_groups and batch_groups must be at least 1, found 0 and 1}}
  %0 = nd.conv_general %x, %w feature_groups 0 : tensor<2x5x5x4xf32>, tensor<3x3x4x6xf32> -> tensor<2x3x3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.reduce_window: window has 1 numbers, expected 2, one per dimension of the operand}}
  %0 = nd.reduce_window max, %x window [2] : tensor<2x3xf32> -> tensor<1x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.reduce_window: window[1] must be at least 1, found 0}}
  %0 = nd.reduce_window max, %x window [2, 0] : tensor<2x3xf32> -> tensor<1x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.reduce_window: padding has 2 numbers, expected 4, low and high per dimension of the operand}}
  %0 = nd.reduce_window sum, %x window [2, 2] padding [1, 1] : tensor<2x3xf32> -> tensor<1x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.reduce_window: result must have shape [1, 2], found [2, 2]}}
  %0 = nd.reduce_window sum, %x window [2, 2] : tensor<2x3xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.reduce_window: element types differ: result has f64, operand has f32}}
  %0 = nd.reduce_window sum, %x window [2, 2] : tensor<2x3xf32> -> tensor<1x2xf64>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %s: tensor<4xf32>) {
  // expected-error@+1 {{nd.select_and_scatter: source must have shape [3], found [4]}}
  %0 = nd.select_and_scatter %x, %s window [2] : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %s: tensor<3xf64>) {
  // expected-error@+1 {{nd.select_and_scatter: element types differ: source has f64, operand has f32}}
  %0 = nd.select_and_scatter %x, %s window [2] : tensor<4xf32>, tensor<3xf64> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %s: tensor<3xf32>) {
  // expected-error@+1 {{nd.select_and_scatter: shapes differ: operand has [4], result has [3]}}
  %0 = nd.select_and_scatter %x, %s window [2] : tensor<4xf32>, tensor<3xf32> -> tensor<3xf32>
  return
}
