// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// Index vectors stand in the last dimension of the indices, one component per dimension of map.

func.func @f(%x: tensor<4x5xf32>, %i: tensor<i32>) {
  // expected-error@+1 {{nd.gather_general: indices must have at least one dimension, the last one holds the index vectors; found rank 0}}
  %0 = nd.gather_general %x, %i collapsed [0, 1] map [0] sizes [1, 1] : tensor<4x5xf32>, tensor<i32> -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %i: tensor<3x1xi32>) {
  // expected-error@+1 {{nd.gather_general: the index vectors have 1 components, map names 2 dimensions}}
  %0 = nd.gather_general %x, %i offset [1] collapsed [0] map [0, 1] sizes [1, 5] : tensor<4x5xf32>, tensor<3x1xi32> -> tensor<3x5xf32>
  return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %i: tensor<3x1xi32>) {
  // expected-error@+1 {{nd.gather_general: the result has 2 dimensions besides offset, the indices have 1 besides their last}}
  %0 = nd.gather_general %x, %i offset [1] collapsed [0] map [0] sizes [1, 5] : tensor<4x5xf32>, tensor<3x1xi32> -> tensor<3x5x1xf32>
  return
}
