// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// Sizes of one loop agree, and the result is the accumulator's type.

func.func @f(%x: vector<4x8xf32>, %y: vector<7xf32>, %a: vector<4xf32>) {
  // expected-error@+1 {{vector.contract: loop 1 has 8 and 7 steps}}
  %0 = "vector.contract"(%x, %y, %a) <{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = [#vector.iterator_type<parallel>, #vector.iterator_type<reduction>], kind = #vector.kind<add>}> : (vector<4x8xf32>, vector<7xf32>, vector<4xf32>) -> vector<4xf32>
  return
}

// -----

func.func @f(%x: vector<4x8xf32>, %y: vector<8xf32>, %a: vector<4xf32>) {
  // expected-error@+1 {{vector.contract: result must be vector<4xf32>, got vector<5xf32>}}
  %0 = "vector.contract"(%x, %y, %a) <{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = [#vector.iterator_type<parallel>, #vector.iterator_type<reduction>], kind = #vector.kind<add>}> : (vector<4x8xf32>, vector<8xf32>, vector<4xf32>) -> vector<5xf32>
  return
}
