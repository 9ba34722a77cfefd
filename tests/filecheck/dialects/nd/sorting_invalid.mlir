// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.sort: dim names dimension 1, operand 0 has rank 1}}
  %0 = nd.sort %x dim 1 : tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.sort: keys must be in 1 to 1, the number of operands, found 2}}
  %0 = nd.sort %x dim 0 keys 2 : tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>, %y: tensor<3xf32>) {
  // expected-error@+1 {{nd.sort: operand 1 must have shape [2], found [3]}}
  %0, %1 = nd.sort %x, %y dim 0 : tensor<2xf32>, tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.sort: arguments of the comparator must have types (tensor<f32>, tensor<f32>), found (tensor<f32>)}}
  %0 = nd.sort %x dim 0 by (%a: tensor<f32>) {
    nd.yield %a : tensor<f32>
  } : tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.sort: yielded values of the comparator must have types (tensor<i1>), found (tensor<f32>)}}
  %0 = nd.sort %x dim 0 by (%a: tensor<f32>, %b: tensor<f32>) {
    nd.yield %a : tensor<f32>
  } : tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.sort: the comparator holds nd.reduce_sum, expected elementwise ops and constants of nd}}
  %0 = nd.sort %x dim 0 by (%a: tensor<f32>, %b: tensor<f32>) {
    %s = nd.reduce_sum %a dims [] : tensor<f32> -> tensor<f32>
    %c = nd.compare lt, %s, %b : tensor<f32>
    nd.yield %c : tensor<i1>
  } : tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.sort: a comparator replaces keys, descending and total_order: expected none of them beside it}}
  %0 = nd.sort %x dim 0 descending by (%a: tensor<f32>, %b: tensor<f32>) {
    %c = nd.compare lt, %a, %b : tensor<f32>
    nd.yield %c : tensor<i1>
  } : tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>, %y: tensor<f32>) {
  %0 = nd.sort %x dim 0 by (%a: tensor<f32>, %b: tensor<f32>) {
    // expected-error@+1 {{operand #1 does not dominate this use: defined outside of the isolated op around this use}}
    %c = nd.compare lt, %a, %y : tensor<f32>
    nd.yield %c : tensor<i1>
  } : tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error@+1 {{nd.yield: stands in func.func, expected an op of nd with a region}}
  nd.yield %x : tensor<f32>
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.top_k: k must be in 0 to 2, the size of dimension 0, found 3}}
  %0, %1 = nd.top_k %x k 3 dim 0 : tensor<2xf32> -> tensor<3xf32>, tensor<3xi32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.sort: 1 operands need as many results, found 2}}
  %0:2 = "nd.sort"(%x) <{dim = 0 : i64, keys = 1 : i64, descending = false, total_order = false}> : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.sort: the comparator works on single elements, found tensor<2xf32> in nd.constant}}
  %0 = nd.sort %x dim 0 by (%a: tensor<f32>, %b: tensor<f32>) {
    %k = nd.constant splat(1.0 : f32) : tensor<2xf32>
    %c = nd.compare lt, %a, %b : tensor<f32>
    nd.yield %c : tensor<i1>
  } : tensor<2xf32>
  return
}
