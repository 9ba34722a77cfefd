// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// The updates hold one window per index vector.

func.func @f(%x: tensor<4x5xf32>, %i: tensor<3x1xi32>, %u: tensor<2x5xf32>) {
  // expected-error@+1 {{nd.scatter_general: dimension 0 of the updates has size 2, dimension 0 of the indices 3}}
  %0 = nd.scatter_general set, %x, %i, %u window [1] inserted [0] map [0] : tensor<4x5xf32>, tensor<3x1xi32>, tensor<2x5xf32> -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %i: tensor<3x1xi32>, %u: tensor<3x6xf32>) {
  // expected-error@+1 {{nd.scatter_general: a window of 6 along dimension 1 of the updates does not fit in 5}}
  %0 = nd.scatter_general set, %x, %i, %u window [1] inserted [0] map [0] : tensor<4x5xf32>, tensor<3x1xi32>, tensor<3x6xf32> -> tensor<4x5xf32>
  return
}
