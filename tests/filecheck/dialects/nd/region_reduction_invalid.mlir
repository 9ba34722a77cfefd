// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<4xf32>, %a: tensor<i32>) {
  // expected-error@+1 {{nd.reduce: initial value 0 must have type tensor<f32>, found tensor<i32>}}
  %0 = nd.reduce %x init %a dims [0] by (%p: tensor<f32>, %v: tensor<f32>) {
    nd.yield %p : tensor<f32>
  } : tensor<4xf32>, tensor<i32> -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %a: tensor<f32>) {
  // expected-error@+1 {{nd.reduce: result 0 must have shape [], found [4]}}
  %0 = nd.reduce %x init %a dims [0] by (%p: tensor<f32>, %v: tensor<f32>) {
    nd.yield %p : tensor<f32>
  } : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %a: tensor<f32>) {
  // expected-error@+1 {{nd.reduce: dims names dimension 1, operand 0 has rank 1}}
  %0 = nd.reduce %x init %a dims [1] by (%p: tensor<f32>, %v: tensor<f32>) {
    nd.yield %p : tensor<f32>
  } : tensor<4xf32>, tensor<f32> -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %a: tensor<f32>) {
  // expected-error@+1 {{nd.reduce: the combiner works on single elements, found tensor<2xf32> in nd.constant}}
  %0 = nd.reduce %x init %a dims [0] by (%p: tensor<f32>, %v: tensor<f32>) {
    %c = nd.constant splat(1.0 : f32) : tensor<2xf32>
    %d = nd.neg %c : tensor<2xf32>
    nd.yield %p : tensor<f32>
  } : tensor<4xf32>, tensor<f32> -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %a: tensor<f32>) {
  // expected-error@+1 {{nd.reduce_window_general: base_dilations[0] must be at least 1, found 0}}
  %0 = nd.reduce_window_general %x init %a window [2] base_dilations [0] by (%p: tensor<f32>, %v: tensor<f32>) {
    nd.yield %p : tensor<f32>
  } : tensor<4xf32>, tensor<f32> -> tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %s: tensor<3xf32>, %a: tensor<f32>) {
  // expected-error@+1 {{nd.select_and_scatter_general: source must have shape [2], found [3]}}
  %0 = nd.select_and_scatter_general %x, %s, %a window [2] strides [2] select (%p: tensor<f32>, %v: tensor<f32>) {
    %c = nd.compare gt, %p, %v : tensor<f32>
    nd.yield %c : tensor<i1>
  } scatter (%p: tensor<f32>, %v: tensor<f32>) {
    nd.yield %v : tensor<f32>
  } : tensor<4xf32>, tensor<3xf32>, tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %a: tensor<f32>) {
  // expected-error@+1 {{nd.reduce: 1 results need 1 operands and as many initial values, found 3}}
  %0 = nd.reduce %x init %a, %a dims [0] by (%p: tensor<f32>, %v: tensor<f32>) {
    nd.yield %p : tensor<f32>
  } : tensor<4xf32>, tensor<f32>, tensor<f32> -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %a: tensor<f32>) {
  // expected-error@+1 {{nd.reduce: element types differ: result 0 has i32, operand 0 has f32}}
  %0 = nd.reduce %x init %a dims [0] by (%p: tensor<f32>, %v: tensor<f32>) {
    nd.yield %p : tensor<f32>
  } : tensor<4xf32>, tensor<f32> -> tensor<i32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %s: tensor<3xf32>, %a: tensor<i32>) {
  // expected-error@+1 {{nd.select_and_scatter_general: source and start must have element type f32, found f32 and tensor<i32>}}
  %0 = nd.select_and_scatter_general %x, %s, %a window [2] select (%p: tensor<f32>, %v: tensor<f32>) {
    %c = nd.compare gt, %p, %v : tensor<f32>
    nd.yield %c : tensor<i1>
  } scatter (%p: tensor<f32>, %v: tensor<f32>) {
    nd.yield %v : tensor<f32>
  } : tensor<4xf32>, tensor<3xf32>, tensor<i32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %a: tensor<f32>) {
  // expected-error@+1 {{nd.reduce: the combiner must end in nd.yield, found nd.neg}}
  %0 = nd.reduce %x init %a dims [0] by (%p: tensor<f32>, %v: tensor<f32>) {
    // expected-error@+1 {{'nd.neg' op ends its block but is not a terminator}}
    %n = nd.neg %p : tensor<f32>
  } : tensor<4xf32>, tensor<f32> -> tensor<f32>
  return
}
