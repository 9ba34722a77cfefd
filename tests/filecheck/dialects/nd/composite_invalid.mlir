// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2xi32>) {
  // expected-error@+1 {{nd.softmax: operand must have a float type (f64, f32, f16, bf16, f8E4M3FN, f8E5M2), found i32}}
  %0 = nd.softmax %x dim 0 : tensor<2xi32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.log_softmax: dim names dimension 2, operand has rank 2}}
  %0 = nd.log_softmax %x dim 2 : tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.logsumexp: result must have shape [2], found [3]}}
  %0 = nd.logsumexp %x dim 1 : tensor<2x3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.logsumexp: element types differ: result has f64, operand has f32}}
  %0 = nd.logsumexp %x dim 1 : tensor<2x3xf32> -> tensor<2xf64>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<2xf32>) {
  // expected-error@+1 {{nd.layer_norm: scale must have shape [3], found [2]}}
  %0 = nd.layer_norm %x, %s, %s eps 0.1 : tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf64>) {
  // expected-error@+1 {{nd.layer_norm: element types differ: scale has f64, operand has f32}}
  %0 = nd.layer_norm %x, %s, %s eps 0.1 : tensor<2x3xf32>, tensor<3xf64>, tensor<3xf64>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>) {
  // expected-error@+1 {{nd.layer_norm: eps must be at least 0, found -0.5}}
  %0 = nd.layer_norm %x, %s, %s eps -0.5 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x?xf32>, %s: tensor<?xf32>) {
  // expected-error@+1 {{nd.layer_norm: the last dimension must have a static size, found tensor<2x?xf32>}}
  %0 = nd.layer_norm %x, %s, %s eps 0.5 : tensor<2x?xf32>, tensor<?xf32>, tensor<?xf32>
  return
}

// -----

func.func @f(%x: tensor<2xi32>) {
  // expected-error@+1 {{nd.gelu: operand must have a float type (f64, f32, f16, bf16, f8E4M3FN, f8E5M2), found i32}}
  %0 = nd.gelu %x : tensor<2xi32>
  return
}

// -----

func.func @f(%x: tensor<2x3x4xf32>, %l: tensor<2xi32>) {
  // expected-error@+1 {{nd.cross_entropy: logits must have rank 2, found tensor<2x3x4xf32>}}
  %0 = nd.cross_entropy %x, %l : tensor<2x3x4xf32>, tensor<2xi32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x?xf32>, %l: tensor<2xi32>) {
  // expected-error@+1 {{nd.cross_entropy: the number of classes must be static, found tensor<2x?xf32>}}
  %0 = nd.cross_entropy %x, %l : tensor<2x?xf32>, tensor<2xi32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x0xf32>, %l: tensor<2xi32>) {
  // expected-error@+1 {{nd.cross_entropy: logits have 0 classes: no label can name one}}
  %0 = nd.cross_entropy %x, %l : tensor<2x0xf32>, tensor<2xi32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %l: tensor<3xi32>) {
  // expected-error@+1 {{nd.cross_entropy: labels must have shape [2], found [3]}}
  %0 = nd.cross_entropy %x, %l : tensor<2x3xf32>, tensor<3xi32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %l: tensor<2xf32>) {
  // expected-error@+1 {{nd.cross_entropy: labels must have an integer wider than i1, found f32}}
  %0 = nd.cross_entropy %x, %l : tensor<2x3xf32>, tensor<2xf32> -> tensor<2xf32>
  return
}
