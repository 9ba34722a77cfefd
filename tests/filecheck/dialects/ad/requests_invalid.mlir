// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @loss(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<f32> {
  %0 = nd.reduce_sum %w dims [0] : tensor<2xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @vector(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<2xf32> {
  return %w : tensor<2xf32>
}
func.func @f(%w: tensor<2xf32>, %n: tensor<i32>) {
  // expected-error@+1 {{ad.grad: no function @nobody in this module}}
  %0 = ad.grad @nobody(%w, %n) wrt [0] : (tensor<2xf32>, tensor<i32>) -> tensor<2xf32>
  return
}

// -----

func.func @loss(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<f32> {
  %0 = nd.reduce_sum %w dims [0] : tensor<2xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @vector(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<2xf32> {
  return %w : tensor<2xf32>
}
func.func @f(%w: tensor<2xf32>, %n: tensor<i32>) {
  // expected-error@+1 {{ad.grad: wrt names argument 2, @loss has 2}}
  %0 = ad.grad @loss(%w, %n) wrt [2] : (tensor<2xf32>, tensor<i32>) -> tensor<2xf32>
  return
}

// -----

func.func @loss(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<f32> {
  %0 = nd.reduce_sum %w dims [0] : tensor<2xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @vector(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<2xf32> {
  return %w : tensor<2xf32>
}
func.func @f(%w: tensor<2xf32>, %n: tensor<i32>) {
  // expected-error@+1 {{ad.grad: wrt names argument 1 of type tensor<i32>, expected a tensor of floats}}
  %0 = ad.grad @loss(%w, %n) wrt [1] : (tensor<2xf32>, tensor<i32>) -> tensor<i32>
  return
}

// -----

func.func @loss(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<f32> {
  %0 = nd.reduce_sum %w dims [0] : tensor<2xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @vector(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<2xf32> {
  return %w : tensor<2xf32>
}
func.func @f(%w: tensor<2xf32>, %n: tensor<i32>) {
  // expected-error@+1 {{ad.grad: wrt is empty; name at least one argument of @loss}}
  "ad.grad"(%w, %n) <{callee = @loss, wrt = array<i64>}> : (tensor<2xf32>, tensor<i32>) -> ()
  return
}

// -----

func.func @loss(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<f32> {
  %0 = nd.reduce_sum %w dims [0] : tensor<2xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @vector(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<2xf32> {
  return %w : tensor<2xf32>
}
func.func @f(%w: tensor<2xf32>, %n: tensor<i32>) {
  // expected-error@+1 {{ad.grad: wrt names an argument twice: [0, 0]}}
  %0, %1 = ad.grad @loss(%w, %n) wrt [0, 0] : (tensor<2xf32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @loss(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<f32> {
  %0 = nd.reduce_sum %w dims [0] : tensor<2xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @vector(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<2xf32> {
  return %w : tensor<2xf32>
}
func.func @f(%w: tensor<2xf32>, %n: tensor<i32>) {
  // expected-error@+1 {{ad.grad: expected 2 arguments for @loss, found 1}}
  %0 = ad.grad @loss(%w) wrt [0] : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @loss(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<f32> {
  %0 = nd.reduce_sum %w dims [0] : tensor<2xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @vector(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<2xf32> {
  return %w : tensor<2xf32>
}
func.func @f(%w: tensor<2xf32>, %n: tensor<i32>) {
  // expected-error@+1 {{ad.grad: argument 0 must have type tensor<2xf32>, found tensor<i32>}}
  %0 = ad.grad @loss(%n, %w) wrt [0] : (tensor<i32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @loss(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<f32> {
  %0 = nd.reduce_sum %w dims [0] : tensor<2xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @vector(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<2xf32> {
  return %w : tensor<2xf32>
}
func.func @f(%w: tensor<2xf32>, %n: tensor<i32>) {
  // expected-error@+1 {{ad.grad: result 0 must have type tensor<2xf32>, found tensor<3xf32>}}
  %0 = ad.grad @loss(%w, %n) wrt [0] : (tensor<2xf32>, tensor<i32>) -> tensor<3xf32>
  return
}

// -----

func.func @loss(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<f32> {
  %0 = nd.reduce_sum %w dims [0] : tensor<2xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @vector(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<2xf32> {
  return %w : tensor<2xf32>
}
func.func @f(%w: tensor<2xf32>, %n: tensor<i32>) {
  // expected-error@+1 {{ad.value_and_grad: expected 2 results for @loss, found 1}}
  %0 = ad.value_and_grad @loss(%w, %n) wrt [0] : (tensor<2xf32>, tensor<i32>) -> tensor<2xf32>
  return
}

// -----

func.func @loss(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<f32> {
  %0 = nd.reduce_sum %w dims [0] : tensor<2xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @vector(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<2xf32> {
  return %w : tensor<2xf32>
}
func.func @f(%w: tensor<2xf32>, %n: tensor<i32>) {
  // expected-error@+1 {{ad.grad: the first result of @vector must be a scalar float tensor, found tensor<2xf32>}}
  %0 = ad.grad @vector(%w, %n) wrt [0] : (tensor<2xf32>, tensor<i32>) -> tensor<2xf32>
  return
}

// -----

func.func @loss(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<f32> {
  %0 = nd.reduce_sum %w dims [0] : tensor<2xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @vector(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<2xf32> {
  return %w : tensor<2xf32>
}
func.func @f(%w: tensor<2xf32>, %n: tensor<i32>) {
  // expected-error@+1 {{ad.vjp: expected 3 arguments for @loss, found 2}}
  %0, %1 = ad.vjp @loss(%w, %n) wrt [0] : (tensor<2xf32>, tensor<i32>) -> (tensor<f32>, tensor<2xf32>)
  return
}

// -----

func.func @loss(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<f32> {
  %0 = nd.reduce_sum %w dims [0] : tensor<2xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @vector(%w: tensor<2xf32>, %n: tensor<i32>) -> tensor<2xf32> {
  return %w : tensor<2xf32>
}
func.func @f(%w: tensor<2xf32>, %n: tensor<i32>) {
  // expected-error@+1 {{ad.stop_gradient: types differ: operand has tensor<2xf32>, result has tensor<3xf32>}}
  %0 = "ad.stop_gradient"(%w) : (tensor<2xf32>) -> tensor<3xf32>
  return
}
