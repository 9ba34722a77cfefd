// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f() {
  // expected-error@+1 {{nd.constant: element types differ: value has f32, result has f64}}
  %0 = nd.constant splat(1.0 : f32) : tensor<2xf64>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{nd.constant: shape must be static, found tensor<?xf32>; use nd.broadcast with sizes for a run-time size}}
  %0 = nd.constant splat(1.0 : f32) : tensor<?xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{nd.constant: types differ: value has tensor<2xi32>, result has tensor<3xi32>}}
  %0 = "nd.constant"() <{value = dense<[1, 2]> : tensor<2xi32>}> : () -> tensor<3xi32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{nd.constant: resource nobody_0123456789abcdef has no data; it belongs under dialect_resources at the end of the text}}
  %0 = nd.constant resource(nobody_0123456789abcdef) : tensor<2xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{nd.iota: dim names dimension 1, the result has rank 1}}
  %0 = nd.iota dim 1 : tensor<2xi32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{nd.iota: result must have a float or complex type or an integer wider than i1, found i1}}
  %0 = nd.iota dim 0 : tensor<2xi1>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{nd.iota: result has 1 run-time sizes, 0 are given after `sizes`}}
  %0 = nd.iota dim 0 : tensor<?xi32>
  return
}

// -----

func.func @f(%n: index) {
  // expected-error@+1 {{nd.empty: result has 0 run-time sizes, 1 are given after `sizes`}}
  %0 = nd.empty sizes (%n) : tensor<2xi32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{nd.symbol: expected the name of a size, found ""}}
  %0 = nd.symbol ""
  return
}

// -----

func.func @f(%n: index) {
  // expected-error@+1 {{nd.bind: expected the name of a size, found ""}}
  nd.bind %n as ""
  return
}
