// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<4xf32>, %i: tensor<i32>) {
  // expected-error@+1 {{nd.gather_general: indices must have at least one dimension, the last one holds the index vectors; found rank 0}}
  %0 = nd.gather_general %x, %i map [0] sizes [1] : tensor<4xf32>, tensor<i32> -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<3x2xi32>) {
  // expected-error@+1 {{nd.gather_general: the index vectors have 2 components, map names 1 dimensions}}
  %0 = nd.gather_general %x, %i collapsed [0] map [0] sizes [1] : tensor<4xf32>, tensor<3x2xi32> -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<3x1xi32>) {
  // expected-error@+1 {{nd.gather_general: dim 0: a window of 5 does not fit in 4}}
  %0 = nd.gather_general %x, %i offset [1] map [0] sizes [5] : tensor<4xf32>, tensor<3x1xi32> -> tensor<3x5xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<3x1xi32>) {
  // expected-error@+1 {{nd.gather_general: sizes[0] must be 1 in a collapsed or batch dimension, found 2}}
  %0 = nd.gather_general %x, %i collapsed [0] map [0] sizes [2] : tensor<4xf32>, tensor<3x1xi32> -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<4x2xf32>, %i: tensor<3x1xi32>) {
  // expected-error@+1 {{nd.gather_general: offset has 0 dimensions, the window walks 1 of the operand}}
  %0 = nd.gather_general %x, %i collapsed [0] map [0] sizes [1, 2] : tensor<4x2xf32>, tensor<3x1xi32> -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<4x2xf32>, %i: tensor<3x1xi32>) {
  // expected-error@+1 {{nd.gather_general: dimension 0 of the operand has size 4, dimension 0 of the indices, which runs along it, 3}}
  %0 = nd.gather_general %x, %i collapsed [1] operand_batch [0] indices_batch [0] map [1] sizes [1, 1] : tensor<4x2xf32>, tensor<3x1xi32> -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<3x1xi32>) {
  // expected-error@+1 {{nd.gather_general: result must have shape [3], found [2]}}
  %0 = nd.gather_general %x, %i collapsed [0] map [0] sizes [1] : tensor<4xf32>, tensor<3x1xi32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<3x1xi32>, %u: tensor<2xf32>) {
  // expected-error@+1 {{nd.scatter_general: dimension 0 of the updates has size 2, dimension 0 of the indices 3}}
  %0 = nd.scatter_general set, %x, %i, %u inserted [0] map [0] : tensor<4xf32>, tensor<3x1xi32>, tensor<2xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>) {
  // expected-error@+1 {{nd.scatter_general: region needs a region, found none}}
  %0 = nd.scatter_general region, %x, %i, %u inserted [0] map [0] : tensor<4xf32>, tensor<3x1xi32>, tensor<3xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xi1>, %i: tensor<3x1xi32>, %u: tensor<3xi1>) {
  // expected-error@+1 {{nd.scatter_general: operand 0 must have a float}}
  %0 = nd.scatter_general add, %x, %i, %u inserted [0] map [0] : tensor<4xi1>, tensor<3x1xi32>, tensor<3xi1> -> tensor<4xi1>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<3x1xi32>, %u: tensor<3x5xf32>) {
  // expected-error@+1 {{nd.scatter_general: a window of 5 along dimension 1 of the updates does not fit in 4}}
  %0 = nd.scatter_general set, %x, %i, %u window [1] map [0] : tensor<4xf32>, tensor<3x1xi32>, tensor<3x5xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x2xf32>, %i: tensor<3x2xi32>) {
  // expected-error@+1 {{nd.take_along_axis: indices must have shape [4, 2], found [3, 2]}}
  %0 = nd.take_along_axis %x, %i dim 1 : tensor<4x2xf32>, tensor<3x2xi32> -> tensor<3x2xf32>
  return
}

// -----

func.func @f(%x: tensor<4x2xf32>, %i: tensor<3x2xi32>) {
  // expected-error@+1 {{nd.gather_general: offset must be sorted, found [2, 1]}}
  %0 = nd.gather_general %x, %i offset [2, 1] map [0, 1] sizes [1, 1] : tensor<4x2xf32>, tensor<3x2xi32> -> tensor<3x1x1xf32>
  return
}

// -----

func.func @f(%x: tensor<4x2xf32>, %i: tensor<4x1xi32>) {
  // expected-error@+1 {{nd.gather_general: dimension 0 of the operand is in operand_batch and in map}}
  %0 = nd.gather_general %x, %i collapsed [1] operand_batch [0] indices_batch [0] map [0] sizes [1, 1] : tensor<4x2xf32>, tensor<4x1xi32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x2xf32>, %i: tensor<4x1xi32>) {
  // expected-error@+1 {{nd.gather_general: operand_batch has 1 dimensions, indices_batch has 0: they run together}}
  %0 = nd.gather_general %x, %i collapsed [1] operand_batch [0] map [1] sizes [1, 1] : tensor<4x2xf32>, tensor<4x1xi32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<3x1xi32>) {
  // expected-error@+1 {{nd.gather_general: the result has 2 dimensions besides offset, the indices have 1 besides their last}}
  %0 = nd.gather_general %x, %i collapsed [0] map [0] sizes [1] : tensor<4xf32>, tensor<3x1xi32> -> tensor<3x1xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<3x1xi32>) {
  // expected-error@+1 {{nd.scatter_general: expected n operands, the indices and n updates for n >= 1 results, found 2 and 1 results}}
  %0 = nd.scatter_general set, %x, %i inserted [0] map [0] : tensor<4xf32>, tensor<3x1xi32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>) {
  // expected-error@+1 {{nd.scatter_general: types differ: operand 0 has tensor<4xf32>, result 0 has tensor<3xf32>}}
  %0 = nd.scatter_general set, %x, %i, %u inserted [0] map [0] : tensor<4xf32>, tensor<3x1xi32>, tensor<3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<4x2xf32>, %i: tensor<3xi32>) {
  // expected-error@+1 {{nd.take_along_axis: ranks differ: operand has 2, indices have 1}}
  %0 = nd.take_along_axis %x, %i dim 1 : tensor<4x2xf32>, tensor<3xi32> -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<4x0xf32>, %i: tensor<4x1xi32>) {
  // expected-error@+1 {{nd.take_along_axis: dimension 1 has size 0: no element to read for the [4, 1] elements of the result}}
  %0 = nd.take_along_axis %x, %i dim 1 : tensor<4x0xf32>, tensor<4x1xi32> -> tensor<4x1xf32>
  return
}
