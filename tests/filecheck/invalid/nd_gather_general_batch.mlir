// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// Batch dimensions run along the indices' dimensions.

func.func @f(%x: tensor<4x5xf32>, %i: tensor<3x1xi32>) {
  // expected-error@+1 {{nd.gather_general: dimension 0 of the operand is in operand_batch and in collapsed}}
  %0 = nd.gather_general %x, %i offset [1] collapsed [0] operand_batch [0] indices_batch [0] map [0] sizes [1, 5] : tensor<4x5xf32>, tensor<3x1xi32> -> tensor<3x5xf32>
  return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %i: tensor<3x1xi32>) {
  // expected-error@+1 {{nd.gather_general: operand_batch has 1 dimensions, indices_batch has 0: they run together}}
  %0 = nd.gather_general %x, %i offset [1] operand_batch [0] map [1] sizes [1, 5] : tensor<4x5xf32>, tensor<3x1xi32> -> tensor<3x5xf32>
  return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %i: tensor<3x1xi32>) {
  // expected-error@+1 {{nd.gather_general: dimension 0 of the operand has size 4, dimension 0 of the indices, which runs along it, 3}}
  %0 = nd.gather_general %x, %i offset [1] operand_batch [0] indices_batch [0] map [1] sizes [1, 5] : tensor<4x5xf32>, tensor<3x1xi32> -> tensor<3x5xf32>
  return
}
