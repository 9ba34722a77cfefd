// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.reshape: numbers of elements differ: operand has shape [2, 3], result has [7]}}
  %0 = nd.reshape %x : tensor<2x3xf32> -> tensor<7xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32, ["a", ""]>) {
  // expected-error@+1 {{nd.reshape: numbers of elements differ: operand has shape [a, 4], result has [b, 2, 2]}}
  %0 = nd.reshape %x : tensor<?x4xf32, ["a", ""]> -> tensor<?x2x2xf32, ["b", "", ""]>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.reshape: element types differ: result has i32, operand has f32}}
  %0 = nd.reshape %x : tensor<2x3xf32> -> tensor<6xi32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.transpose: perm has 1 numbers, expected 2, one per dimension of the operand}}
  %0 = nd.transpose %x perm [1] : tensor<2x3xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.transpose: perm names a dimension twice: [1, 1]}}
  %0 = nd.transpose %x perm [1, 1] : tensor<2x3xf32> -> tensor<3x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.transpose: result must have shape [3, 2], found [2, 3]}}
  %0 = nd.transpose %x perm [1, 0] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error@+1 {{nd.broadcast: sizes differ: operand dim 0 has 3, result dim 1 has 4}}
  %0 = nd.broadcast %x dims [1] : tensor<3xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error@+1 {{nd.broadcast: dims names dimension 2, the result has rank 2}}
  %0 = nd.broadcast %x dims [2] : tensor<3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error@+1 {{nd.broadcast: dims has 0 numbers, expected 1, one per dimension of the operand}}
  %0 = nd.broadcast %x dims [] : tensor<3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error@+1 {{nd.broadcast: result has 1 run-time sizes, 0 are given after `sizes`}}
  %0 = nd.broadcast %x dims [1] : tensor<3xf32> -> tensor<?x3xf32, ["b", ""]>
  return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error@+1 {{nd.broadcast: element types differ: result has f64, operand has f32}}
  %0 = nd.broadcast %x dims [1] : tensor<3xf32> -> tensor<2x3xf64>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.slice: start has 1 numbers, expected 2, one per dimension of the operand}}
  %0 = nd.slice %x start [0] limit [1, 1] : tensor<2x3xf32> -> tensor<1x1xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.slice: start[0] must be at least 0, found -1}}
  %0 = nd.slice %x start [-1, 0] limit [1, 1] : tensor<2x3xf32> -> tensor<2x1xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.slice: stride[1] must be at least 1, found 0}}
  %0 = nd.slice %x start [0, 0] limit [1, 1] stride [1, 0] : tensor<2x3xf32> -> tensor<1x1xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.slice: dim 1: start 0 and limit 4 must satisfy 0 <= start <= limit <= 3}}
  %0 = nd.slice %x start [0, 0] limit [1, 4] : tensor<2x3xf32> -> tensor<1x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.slice: dim 1: start 2 and limit 1 must satisfy 0 <= start <= limit <= 3}}
  %0 = nd.slice %x start [0, 2] limit [1, 1] : tensor<2x3xf32> -> tensor<1x0xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.slice: result must have shape [2, 2], found [2, 1]}}
  %0 = nd.slice %x start [0, 0] limit [2, 3] stride [1, 2] : tensor<2x3xf32> -> tensor<2x1xf32>
  return
}

// -----

func.func @f(%x: tensor<3xf32>, %v: tensor<1xf32>) {
  // expected-error@+1 {{nd.pad: value must have shape [], found [1]}}
  %0 = nd.pad %x, %v low [1] high [0] : tensor<3xf32>, tensor<1xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<3xf32>, %v: tensor<f64>) {
  // expected-error@+1 {{nd.pad: element types differ: value has f64, operand has f32}}
  %0 = nd.pad %x, %v low [1] high [0] : tensor<3xf32>, tensor<f64> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<3xf32>, %v: tensor<f32>) {
  // expected-error@+1 {{nd.pad: low has 2 numbers, expected 1, one per dimension of the operand}}
  %0 = nd.pad %x, %v low [1, 1] high [0] : tensor<3xf32>, tensor<f32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<3xf32>, %v: tensor<f32>) {
  // expected-error@+1 {{nd.pad: interior[0] must be at least 0, found -1}}
  %0 = nd.pad %x, %v low [1] high [0] interior [-1] : tensor<3xf32>, tensor<f32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<3xf32>, %v: tensor<f32>) {
  // expected-error@+1 {{nd.pad: dim 0: size 3 with low -2, high -2, interior 0 leaves -1 elements}}
  %0 = nd.pad %x, %v low [-2] high [-2] : tensor<3xf32>, tensor<f32> -> tensor<0xf32>
  return
}

// -----

func.func @f(%x: tensor<3xf32>, %v: tensor<f32>) {
  // expected-error@+1 {{nd.pad: result must have shape [4], found [5]}}
  %0 = nd.pad %x, %v low [1] high [0] : tensor<3xf32>, tensor<f32> -> tensor<5xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %y: tensor<2x4x1xf32>) {
  // expected-error@+1 {{nd.concatenate: shapes differ outside dimension 0: input 0 has [2, 3], input 1 has [2, 4, 1]}}
  %0 = nd.concatenate %x, %y dim 0 : tensor<2x3xf32>, tensor<2x4x1xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %y: tensor<2x3xf64>) {
  // expected-error@+1 {{nd.concatenate: element types differ: input 1 has f64, input 0 has f32}}
  %0 = nd.concatenate %x, %y dim 0 : tensor<2x3xf32>, tensor<2x3xf64> -> tensor<4x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.concatenate: dim names dimension 2, input 0 has rank 2}}
  %0 = nd.concatenate %x dim 2 : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.concatenate: result must have shape [2, 6], found [2, 3]}}
  %0 = nd.concatenate %x, %x dim 1 : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{nd.concatenate: expected at least one input, found 0}}
  %0 = "nd.concatenate"() <{dim = 0 : i64}> : () -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.reverse: dims names dimension 2, operand has rank 2}}
  %0 = nd.reverse %x dims [2] : tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{property 'dims' expected}}
  %0 = "nd.reverse"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}
