// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.reduce_sum: dims names dimension 2, operand has rank 2}}
  %0 = nd.reduce_sum %x dims [2] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.reduce_sum: dims names dimension -1, operand has rank 2}}
  %0 = nd.reduce_sum %x dims [-1] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.reduce_max: dims names a dimension twice: [1, 1]}}
  %0 = nd.reduce_max %x dims [1, 1] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.reduce_max: result must have shape [2], found [3]}}
  %0 = nd.reduce_max %x dims [1] : tensor<2x3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.reduce_max: element types differ: result has f64, operand has f32}}
  %0 = nd.reduce_max %x dims [1] : tensor<2x3xf32> -> tensor<2xf64>
  return
}

// -----

func.func @f(%x: tensor<2xi1>) {
  // expected-error@+1 {{nd.reduce_sum: operand must have a float or complex type or an integer wider than i1, found i1}}
  %0 = nd.reduce_sum %x dims [0] : tensor<2xi1> -> tensor<i1>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.reduce_any: operand must have i1, found f32}}
  %0 = nd.reduce_any %x dims [0] : tensor<2xf32> -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.argmax: dim names dimension 2, operand has rank 2}}
  %0 = nd.argmax %x dim 2 : tensor<2x3xf32> -> tensor<2xi32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.argmax: result must have an integer wider than i1, found f32}}
  %0 = nd.argmax %x dim 1 : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{nd.argmin: result must have shape [2], found [3]}}
  %0 = nd.argmin %x dim 1 : tensor<2x3xf32> -> tensor<3xi32>
  return
}

// -----

func.func @f(%x: tensor<2x0xf32>) {
  // expected-error@+1 {{nd.argmin: dimension 1 has size 0: no element has a position}}
  %0 = nd.argmin %x dim 1 : tensor<2x0xf32> -> tensor<2xi32>
  return
}
