// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<3x4xf32>, %y: tensor<5x6xf32>) {
  // expected-error@+1 {{nd.dot_general: contracting sizes differ: lhs dim 1 has 4, rhs dim 0 has 5}}
  %0 = nd.dot_general %x, %y contract [1] x [0] : tensor<3x4xf32>, tensor<5x6xf32> -> tensor<3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<3x4xf32>, %y: tensor<5x6xf32>) {
  // expected-error@+1 {{nd.dot_general: batch sizes differ: lhs dim 0 has 3, rhs dim 0 has 5}}
  %0 = nd.dot_general %x, %y batch [0] x [0] contract [] x [] : tensor<3x4xf32>, tensor<5x6xf32> -> tensor<3x4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<3x?xf32, ["", "a"]>, %y: tensor<?x6xf32, ["b", ""]>) {
  // expected-error@+1 {{nd.dot_general: contracting sizes differ: lhs dim 1 has a, rhs dim 0 has b}}
  %0 = nd.dot_general %x, %y contract [1] x [0] : tensor<3x?xf32, ["", "a"]>, tensor<?x6xf32, ["b", ""]> -> tensor<3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<3x4xf32>, %y: tensor<5x6xf32>) {
  // expected-error@+1 {{nd.dot_general: numbers of contracting dimensions differ: lhs has 1, rhs has 0}}
  %0 = nd.dot_general %x, %y contract [1] x [] : tensor<3x4xf32>, tensor<5x6xf32> -> tensor<3x5x6xf32>
  return
}

// -----

func.func @f(%x: tensor<3x4xf32>, %y: tensor<5x6xf32>) {
  // expected-error@+1 {{nd.dot_general: lhs_batch and lhs_contract names dimension 2, lhs has rank 2}}
  %0 = nd.dot_general %x, %y contract [2] x [0] : tensor<3x4xf32>, tensor<5x6xf32> -> tensor<3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<3x4xf32>, %y: tensor<5x6xf32>) {
  // expected-error@+1 {{nd.dot_general: rhs_batch and rhs_contract names a dimension twice: [0, 0]}}
  %0 = nd.dot_general %x, %y batch [0] x [0] contract [1] x [0] : tensor<3x4xf32>, tensor<5x6xf32> -> tensor<3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<3x4xf32>, %y: tensor<4x6xf32>) {
  // expected-error@+1 {{nd.dot_general: result must have shape [3, 6], found [6, 3]}}
  %0 = nd.dot_general %x, %y contract [1] x [0] : tensor<3x4xf32>, tensor<4x6xf32> -> tensor<6x3xf32>
  return
}

// -----

func.func @f(%x: tensor<3x4xf32>, %y: tensor<4x6xf64>) {
  // expected-error@+1 {{nd.dot_general: element types do not fit: lhs has f32, rhs has f64, result has f64}}
  %0 = nd.dot_general %x, %y contract [1] x [0] : tensor<3x4xf32>, tensor<4x6xf64> -> tensor<3x6xf64>
  return
}

// -----

func.func @f(%x: tensor<3x4xi8>, %y: tensor<4x6xi8>) {
  // expected-error@+1 {{nd.dot_general: element types do not fit: lhs has i8, rhs has i8, result has f32}}
  %0 = nd.dot_general %x, %y contract [1] x [0] : tensor<3x4xi8>, tensor<4x6xi8> -> tensor<3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<3x4xi1>, %y: tensor<4x6xi1>) {
  // expected-error@+1 {{nd.dot_general: lhs must have a float or complex type or an integer wider than i1, found i1}}
  %0 = nd.dot_general %x, %y contract [1] x [0] : tensor<3x4xi1>, tensor<4x6xi1> -> tensor<3x6xi1>
  return
}
