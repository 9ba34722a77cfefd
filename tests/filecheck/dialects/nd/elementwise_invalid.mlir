// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{nd.add: shapes differ: lhs has [2, 3], rhs has [4]; broadcasting is explicit, see nd.broadcast}}
  %0 = "nd.add"(%x, %y) : (tensor<2x3xf32>, tensor<4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>, %y: tensor<2xi32>) {
  // expected-error@+1 {{nd.mul: element types differ: rhs has i32, lhs has f32}}
  %0 = "nd.mul"(%x, %y) : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.sub: shapes differ: lhs has [2], result has [3]}}
  %0 = "nd.sub"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<?xf32, ["a"]>, %y: tensor<?xf32, ["b"]>) {
  // expected-error@+1 {{nd.add: shapes differ: lhs has [a], rhs has [b]}}
  %0 = "nd.add"(%x, %y) : (tensor<?xf32, ["a"]>, tensor<?xf32, ["b"]>) -> tensor<?xf32, ["a"]>
  return
}

// -----

func.func @f(%x: tensor<2xi1>) {
  // expected-error@+1 {{nd.sub: lhs must have a float or complex type or an integer wider than i1, found i1}}
  %0 = nd.sub %x, %x : tensor<2xi1>
  return
}

// -----

func.func @f(%x: tensor<2xi1>) {
  // expected-error@+1 {{nd.neg: operand must have a float or complex type or an integer wider than i1, found i1}}
  %0 = nd.neg %x : tensor<2xi1>
  return
}

// -----

func.func @f(%x: tensor<2xi32>) {
  // expected-error@+1 {{nd.exp: operand must have a float type (f64, f32, f16, bf16, f8E4M3FN, f8E5M2) or a complex type, found i32}}
  %0 = nd.exp %x : tensor<2xi32>
  return
}

// -----

func.func @f(%x: tensor<2xui8>) {
  // expected-error@+1 {{nd.relu: operand must have a float type or a signed integer wider than i1, found ui8}}
  %0 = nd.relu %x : tensor<2xui8>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.not: operand must have an integer type or i1, found f32}}
  %0 = nd.not %x : tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.shl: lhs must have an integer wider than i1, found f32}}
  %0 = nd.shl %x, %x : tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xi1>) {
  // expected-error@+1 {{nd.shr_u: lhs must have an integer wider than i1, found i1}}
  %0 = nd.shr_u %x, %x : tensor<2xi1>
  return
}

// -----

func.func @f(%x: tensor<2xi32>) {
  // expected-error@+1 {{nd.atan2: lhs must have a float type (f64, f32, f16, bf16, f8E4M3FN, f8E5M2), found i32}}
  %0 = nd.atan2 %x, %x : tensor<2xi32>
  return
}

// -----

func.func @f(%x: tensor<2xindex>) {
  // expected-error@+1 {{nd.add: lhs must have a float, complex or integer type, found index}}
  %0 = nd.add %x, %x : tensor<2xindex>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.is_finite: result must have i1, found i8}}
  %0 = nd.is_finite %x : tensor<2xf32> -> tensor<2xi8>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.is_finite: result must have shape [2], found [3]}}
  %0 = nd.is_finite %x : tensor<2xf32> -> tensor<3xi1>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.convert: result must have shape [2], found [2, 1]}}
  %0 = nd.convert %x : tensor<2xf32> -> tensor<2x1xi32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>, %y: tensor<3xf32>) {
  // expected-error@+1 {{nd.compare: shapes differ: lhs has [2], rhs has [3]}}
  %0 = "nd.compare"(%x, %y) <{direction = #nd<direction lt>}> : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xi1>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.compare: result must have i1, found f32}}
  %0 = "nd.compare"(%x, %x) <{direction = #nd<direction lt>}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{Expected `eq`, `ne`, `lt`, `le`, `gt`, or `ge`.}}
  %0 = nd.compare below, %x, %x : tensor<2xf32>
  return
}

// -----

func.func @f(%p: tensor<3xi1>, %x: tensor<2xf32>) {
  // expected-error@+1 {{nd.select: pred must have shape [2], found [3]}}
  %0 = "nd.select"(%p, %x, %x) : (tensor<3xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%p: tensor<2xi8>, %x: tensor<2xf32>) {
  // expected-error@+1 {{nd.select: pred must have i1, found i8}}
  %0 = "nd.select"(%p, %x, %x) : (tensor<2xi8>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%l: tensor<f32>, %x: tensor<2xf32>) {
  // expected-error@+1 {{nd.clamp: shapes differ: operand has [2], lo has []}}
  %0 = "nd.clamp"(%l, %x, %l) : (tensor<f32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: f32) {
  // expected-error@+1 {{expected a tensor type, found f32}}
  %0 = nd.exp %x : f32
  return
}
