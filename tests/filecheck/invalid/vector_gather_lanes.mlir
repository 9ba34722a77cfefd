// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// Offsets per dimension, and lanes of one shape.

func.func @f(%m: memref<4xf32>, %i: vector<4xi32>, %k: vector<4xi1>, %v: vector<4xf32>) {
  // expected-error@+1 {{vector.scatter: expected 1 offsets for memref<4xf32>, got 0}}
  "vector.scatter"(%m, %i, %k, %v) : (memref<4xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32>) -> ()
  return
}

// -----

func.func @f(%m: memref<4xf32>, %n: index, %i: vector<4xi32>, %k: vector<3xi1>, %v: vector<4xf32>) {
  // expected-error@+1 {{vector.scatter: indices, mask and values must have one shape, got vector<4xi32>, vector<3xi1>, vector<4xf32>}}
  "vector.scatter"(%m, %n, %i, %k, %v) : (memref<4xf32>, index, vector<4xi32>, vector<3xi1>, vector<4xf32>) -> ()
  return
}
