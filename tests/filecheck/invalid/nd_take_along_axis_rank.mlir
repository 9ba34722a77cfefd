// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// Operand and indices have one rank.

func.func @f(%x: tensor<4x5xf32>, %i: tensor<3xi32>) {
  // expected-error@+1 {{nd.take_along_axis: ranks differ: operand has 2, indices have 1}}
  %0 = nd.take_along_axis %x, %i dim 0 : tensor<4x5xf32>, tensor<3xi32> -> tensor<3x5xf32>
  return
}
