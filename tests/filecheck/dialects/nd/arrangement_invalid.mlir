// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{nd.split: sizes sum to 3, dimension 0 has size 4}}
  %0, %1 = nd.split %x sizes [1, 2] dim 0 : tensor<4xf32> -> tensor<1xf32>, tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{nd.split: result 1 must have shape [3], found [2]}}
  %0, %1 = nd.split %x sizes [1, 3] dim 0 : tensor<4xf32> -> tensor<1xf32>, tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xi32>) {
  // expected-error@+1 {{nd.one_hot: result must have shape [2, 3], found [2, 4]}}
  %0 = nd.one_hot %x depth 3 : tensor<2xi32> -> tensor<2x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.one_hot: indices must have an integer wider than i1, found f32}}
  %0 = nd.one_hot %x depth 3 : tensor<2xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{nd.split: sizes has 2 numbers, expected 1, one per result}}
  %0 = nd.split %x sizes [1, 3] dim 0 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<?xf32, ["n"]>) {
  // expected-error@+1 {{nd.split: dimension 0 must have a static size, found tensor<?xf32, ["n"]>}}
  %0 = nd.split %x sizes [4] dim 0 : tensor<?xf32, ["n"]> -> tensor<4xf32>
  return
}
