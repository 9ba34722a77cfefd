// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A contraction has a map per operand, a projected permutation of the operand's rank.

func.func @f(%x: vector<4x8xf32>, %y: vector<8xf32>, %a: vector<4xf32>) {
  // expected-error@+1 {{vector.contract: map (d0, d1) -> (d0) has 1 results for vector<4x8xf32>}}
  %0 = "vector.contract"(%x, %y, %a) <{indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = [#vector.iterator_type<parallel>, #vector.iterator_type<reduction>], kind = #vector.kind<add>}> : (vector<4x8xf32>, vector<8xf32>, vector<4xf32>) -> vector<4xf32>
  return
}

// -----

func.func @f(%x: vector<4x8xf32>, %y: vector<8xf32>, %a: vector<4xf32>) {
  // expected-error@+1 {{vector.contract: map (d0, d1) -> (d0, (d1 + 1)) must be a projected permutation, found (d1 + 1)}}
  %0 = "vector.contract"(%x, %y, %a) <{indexing_maps = [affine_map<(i, j) -> (i, j + 1)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = [#vector.iterator_type<parallel>, #vector.iterator_type<reduction>], kind = #vector.kind<add>}> : (vector<4x8xf32>, vector<8xf32>, vector<4xf32>) -> vector<4xf32>
  return
}

// -----

func.func @f(%x: vector<4x8xf32>, %y: vector<8xf32>, %a: vector<4xf32>) {
  // expected-error@+1 {{vector.contract: 3 operands need 3 maps, found 2}}
  %0 = "vector.contract"(%x, %y, %a) <{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = [#vector.iterator_type<parallel>, #vector.iterator_type<reduction>], kind = #vector.kind<add>}> : (vector<4x8xf32>, vector<8xf32>, vector<4xf32>) -> vector<4xf32>
  return
}
