// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// The window of a gather fits the operand and walks what is not dropped.

func.func @f(%x: tensor<4x5xf32>, %i: tensor<3x1xi32>) {
  // expected-error@+1 {{nd.gather_general: dim 1: a window of 6 does not fit in 5}}
  %0 = nd.gather_general %x, %i offset [1] collapsed [0] map [0] sizes [1, 6] : tensor<4x5xf32>, tensor<3x1xi32> -> tensor<3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %i: tensor<3x1xi32>) {
  // expected-error@+1 {{nd.gather_general: sizes[0] must be 1 in a collapsed or batch dimension, found 2}}
  %0 = nd.gather_general %x, %i offset [1] collapsed [0] map [0] sizes [2, 5] : tensor<4x5xf32>, tensor<3x1xi32> -> tensor<3x5xf32>
  return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %i: tensor<3x1xi32>) {
  // expected-error@+1 {{nd.gather_general: offset has 1 dimensions, the window walks 2 of the operand}}
  %0 = nd.gather_general %x, %i offset [1] map [0] sizes [1, 5] : tensor<4x5xf32>, tensor<3x1xi32> -> tensor<3x5xf32>
  return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %i: tensor<3x1xi32>) {
  // expected-error@+1 {{nd.gather_general: offset must be sorted, found [2, 1]}}
  %0 = nd.gather_general %x, %i offset [2, 1] map [0] sizes [1, 5] : tensor<4x5xf32>, tensor<3x1xi32> -> tensor<3x1x5xf32>
  return
}
