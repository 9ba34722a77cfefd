// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A slice lies within the vector, and its result is as large.

func.func @f(%x: vector<4xf32>) {
  // expected-error@+1 {{vector.extract_strided_slice: result shape must be [2], got vector<3xf32>}}
  %0 = "vector.extract_strided_slice"(%x) <{offsets = [3], sizes = [2], strides = [1]}> : (vector<4xf32>) -> vector<3xf32>
  return
}

// -----

func.func @f(%x: vector<4xf32>) {
  // expected-error@+1 {{vector.extract_strided_slice: elements 3 to 5 of dim 0 exceed vector<4xf32>}}
  %0 = "vector.extract_strided_slice"(%x) <{offsets = [3], sizes = [2], strides = [1]}> : (vector<4xf32>) -> vector<2xf32>
  return
}

// -----

func.func @f(%x: vector<4xf32>) {
  // expected-error@+1 {{vector.extract_strided_slice: offsets, sizes and strides must be equally many, at most 1, found 2, 2 and 2}}
  %0 = "vector.extract_strided_slice"(%x) <{offsets = [0, 0], sizes = [2, 2], strides = [1, 1]}> : (vector<4xf32>) -> vector<2x2xf32>
  return
}
