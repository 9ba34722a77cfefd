// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// What is inserted lies within the destination.

func.func @f(%x: vector<3xf32>, %y: vector<4xf32>) {
  // expected-error@+1 {{vector.insert_strided_slice: elements 2 to 5 of dim 0 exceed vector<4xf32>}}
  %0 = "vector.insert_strided_slice"(%x, %y) <{offsets = [2], strides = [1]}> : (vector<3xf32>, vector<4xf32>) -> vector<4xf32>
  return
}

// -----

func.func @f(%x: vector<3xf32>, %y: vector<4xf32>) {
  // expected-error@+1 {{vector.insert_strided_slice: expected 1 offsets for vector<4xf32>, got 2}}
  %0 = "vector.insert_strided_slice"(%x, %y) <{offsets = [0, 0], strides = [1]}> : (vector<3xf32>, vector<4xf32>) -> vector<4xf32>
  return
}
