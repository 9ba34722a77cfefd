// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x3xi32>, %s: tensor<3xi32>) {
  // expected-error@+1 {{nd.batch_norm_train: operand must have a float type (f64, f32, f16, bf16}}
  %0, %1, %2 = nd.batch_norm_train %x, %s, %s dim 1 eps 1.0e-05 : tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>) {
  // expected-error@+1 {{nd.batch_norm_train: dim names dimension 2, operand has rank 2}}
  %0, %1, %2 = nd.batch_norm_train %x, %s, %s dim 2 eps 1.0e-05 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<2xf32>) {
  // expected-error@+1 {{nd.batch_norm_infer: scale must have shape [3], found [2]}}
  %0 = nd.batch_norm_infer %x, %s, %s, %s, %s dim 1 eps 1.0e-05 : tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %m: tensor<3xf64>) {
  // expected-error@+1 {{nd.batch_norm_infer: element types differ: mean has f64, operand has f32}}
  %0 = nd.batch_norm_infer %x, %s, %s, %m, %s dim 1 eps 1.0e-05 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf64>, tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>, %s: tensor<6xf32>) {
  // expected-error@+1 {{nd.group_norm: groups must divide the 6 channels, found 4}}
  %0 = nd.group_norm %x, %s, %s groups 4 eps 1.0e-05 : tensor<2x6xf32>, tensor<6xf32>, tensor<6xf32>
  return
}

// -----

func.func @f(%x: tensor<6xf32>, %s: tensor<6xf32>) {
  // expected-error@+1 {{nd.group_norm: the operand must have rank 2 at least, [N, S.., C], found tensor<6xf32>}}
  %0 = nd.group_norm %x, %s, %s groups 2 eps 1.0e-05 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x6xf32>, %s: tensor<6xf32>) {
  // expected-error@+1 {{nd.rms_norm: eps must be at least 0, found -1.0}}
  %0 = nd.rms_norm %x, %s eps -1.0 : tensor<2x6xf32>, tensor<6xf32>
  return
}

// -----

func.func @f(%x: tensor<f32>, %s: tensor<6xf32>) {
  // expected-error@+1 {{nd.rms_norm: the operand must have a dimension, found rank 0}}
  %0 = nd.rms_norm %x, %s eps 1.0 : tensor<f32>, tensor<6xf32>
  return
}

// -----

func.func @f(%x: tensor<2xi32>) {
  // expected-error@+1 {{nd.softplus: operand must have a float type (f64, f32, f16, bf16}}
  %0 = nd.softplus %x : tensor<2xi32>
  return
}
