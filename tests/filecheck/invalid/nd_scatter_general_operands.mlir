// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// As many updates as operands and results; a combiner where the kind says so.

func.func @f(%x: tensor<4x5xf32>, %i: tensor<3x1xi32>) {
  // expected-error@+1 {{expected n operands, the indices and n updates for n >= 1 results, found 2 and 1 results}}
  %0 = "nd.scatter_general"(%x, %i) <{kind = #nd.combiner set, window = array<i64: 1>, inserted = array<i64: 0>, operand_batch = array<i64>, indices_batch = array<i64>, map = array<i64: 0>}> : (tensor<4x5xf32>, tensor<3x1xi32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @f(%x: tensor<4x5xf32>, %i: tensor<3x1xi32>, %u: tensor<3x5xf32>) {
  // expected-error@+1 {{region needs a region, found none}}
  %0 = "nd.scatter_general"(%x, %i, %u) <{kind = #nd.combiner region, window = array<i64: 1>, inserted = array<i64: 0>, operand_batch = array<i64>, indices_batch = array<i64>, map = array<i64: 0>}> : (tensor<4x5xf32>, tensor<3x1xi32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  return
}
