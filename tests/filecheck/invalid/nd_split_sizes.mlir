// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// The sizes of nd.split add up to the dimension, which is static.

func.func @f(%x: tensor<7xf32>) {
  // expected-error@+1 {{nd.split: sizes sum to 6, dimension 0 has size 7}}
  %0, %1 = nd.split %x sizes [2, 4] dim 0 : tensor<7xf32> -> tensor<2xf32>, tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<?xf32>) {
  // expected-error@+1 {{nd.split: dimension 0 must have a static size, found tensor<?xf32>}}
  %0 = nd.split %x sizes [2] dim 0 : tensor<?xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<0xf32>) {
  // expected-error@+1 {{nd.split: expected at least one result, found none}}
  "nd.split"(%x) <{dim = 0 : i64, sizes = array<i64>}> : (tensor<0xf32>) -> ()
  return
}
