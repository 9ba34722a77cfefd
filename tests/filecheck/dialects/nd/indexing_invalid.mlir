// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<4x3xf32>, %i: tensor<2xi32>) {
  // expected-error@+1 {{nd.gather: dim names dimension 2, operand has rank 2}}
  %0 = nd.gather %x, %i dim 2 : tensor<4x3xf32>, tensor<2xi32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: tensor<2xi32>) {
  // expected-error@+1 {{nd.gather: result must have shape [2, 3], found [3, 2]}}
  %0 = nd.gather %x, %i dim 0 : tensor<4x3xf32>, tensor<2xi32> -> tensor<3x2xf32>
  return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: tensor<2xf32>) {
  // expected-error@+1 {{nd.gather: indices must have an integer wider than i1, found f32}}
  %0 = nd.gather %x, %i dim 0 : tensor<4x3xf32>, tensor<2xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<0x3xf32>, %i: tensor<2xi32>) {
  // expected-error@+1 {{nd.gather: dimension 0 has size 0: no element to read for the [2, 3] elements of the result}}
  %0 = nd.gather %x, %i dim 0 : tensor<0x3xf32>, tensor<2xi32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: tensor<2xi32>) {
  // expected-error@+1 {{nd.gather: element types differ: result has f64, operand has f32}}
  %0 = nd.gather %x, %i dim 0 : tensor<4x3xf32>, tensor<2xi32> -> tensor<2x3xf64>
  return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: tensor<2xi32>, %u: tensor<3x3xf32>) {
  // expected-error@+1 {{nd.scatter_add: updates must have shape [2, 3], found [3, 3]}}
  %0 = nd.scatter_add %x, %i, %u dim 0 : tensor<4x3xf32>, tensor<2xi32>, tensor<3x3xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: tensor<2xi32>, %u: tensor<2x3xf64>) {
  // expected-error@+1 {{nd.scatter_add: element types differ: updates has f64, operand has f32}}
  %0 = nd.scatter_add %x, %i, %u dim 0 : tensor<4x3xf32>, tensor<2xi32>, tensor<2x3xf64> -> tensor<4x3xf32>
  return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: tensor<2xi32>, %u: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.scatter_add: shapes differ: operand has [4, 3], result has [4, 2]}}
  %0 = nd.scatter_add %x, %i, %u dim 0 : tensor<4x3xf32>, tensor<2xi32>, tensor<2x3xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %s: tensor<i32>) {
  // expected-error@+1 {{nd.dynamic_slice: 1 starts are given, expected 2, one per dimension of the operand}}
  %0 = nd.dynamic_slice %x, %s sizes [2, 2] : tensor<4x3xf32>, tensor<i32> -> tensor<2x2xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{nd.dynamic_slice: start 0 must have an integer wider than i1, found f32}}
  %0 = nd.dynamic_slice %x, %s sizes [2] : tensor<4xf32>, tensor<f32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %s: tensor<1xi32>) {
  // expected-error@+1 {{nd.dynamic_slice: start 0 must have shape [], found [1]}}
  %0 = nd.dynamic_slice %x, %s sizes [2] : tensor<4xf32>, tensor<1xi32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %s: tensor<i32>) {
  // expected-error@+1 {{nd.dynamic_slice: dim 0: a slice of 5 does not fit in 4}}
  %0 = nd.dynamic_slice %x, %s sizes [5] : tensor<4xf32>, tensor<i32> -> tensor<5xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %s: tensor<i32>) {
  // expected-error@+1 {{nd.dynamic_slice: result must have shape [2], found [3]}}
  %0 = nd.dynamic_slice %x, %s sizes [2] : tensor<4xf32>, tensor<i32> -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %u: tensor<5xf32>, %s: tensor<i32>) {
  // expected-error@+1 {{nd.dynamic_update_slice: dim 0: an update of 5 does not fit in 4}}
  %0 = nd.dynamic_update_slice %x, %u, %s : tensor<4xf32>, tensor<5xf32>, tensor<i32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %u: tensor<2x1xf32>, %s: tensor<i32>) {
  // expected-error@+1 {{nd.dynamic_update_slice: ranks differ: operand has 1, update has 2}}
  %0 = nd.dynamic_update_slice %x, %u, %s : tensor<4xf32>, tensor<2x1xf32>, tensor<i32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %u: tensor<2xf64>, %s: tensor<i32>) {
  // expected-error@+1 {{nd.dynamic_update_slice: element types differ: update has f64, operand has f32}}
  %0 = nd.dynamic_update_slice %x, %u, %s : tensor<4xf32>, tensor<2xf64>, tensor<i32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: index) {
  // expected-error@+1 {{nd.index_at: dim names dimension 2, operand has rank 2}}
  %0 = nd.index_at %x[%i] dim 2 : tensor<4x3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<4x3xf32>, %i: index) {
  // expected-error@+1 {{nd.index_at: result must have shape [3], found [4]}}
  %0 = nd.index_at %x[%i] dim 0 : tensor<4x3xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%v: tensor<4xf32>, %x: tensor<4x3xf32>, %i: index) {
  // expected-error@+1 {{nd.update_at: value must have shape [3], found [4]}}
  %0 = nd.update_at %v into %x[%i] dim 0 : tensor<4xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @f(%v: tensor<3xf64>, %x: tensor<4x3xf32>, %i: index) {
  // expected-error@+1 {{nd.update_at: element types differ: value has f64, operand has f32}}
  %0 = nd.update_at %v into %x[%i] dim 0 : tensor<3xf64> -> tensor<4x3xf32>
  return
}
