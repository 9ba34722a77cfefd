// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @g(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@+1 {{ad.checkpoint: callee @nowhere is no function in this module}}
  %a = ad.checkpoint @nowhere(%x) : (tensor<f32>) -> tensor<f32>
  return %a : tensor<f32>
}

// -----

func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
func.func @g(%x: tensor<f64>) -> tensor<f32> {
  // expected-error@+1 {{argument 0 of @f must have type tensor<f32>, found tensor<f64>}}
  %a = ad.checkpoint @f(%x) : (tensor<f64>) -> tensor<f32>
  return %a : tensor<f32>
}

// -----

func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
func.func private @forward(%x: tensor<f32>) -> (tensor<f32>, tensor<f64>) {
  %r = nd.constant splat(1.0 : f64) : tensor<f64>
  return %x, %r : tensor<f32>, tensor<f64>
}
func.func @g(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@+1 {{expected 2 arguments of @f, found 1}}
  %a = ad.custom_vjp @f forward @forward backward @f(%x) : (tensor<f32>) -> tensor<f32>
  return %a : tensor<f32>
}

// -----

func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
func.func private @rule(%x: tensor<f32>, %t: tensor<f32>) -> (tensor<f32>, tensor<f64>) {
  %r = nd.constant splat(1.0 : f64) : tensor<f64>
  return %x, %r : tensor<f32>, tensor<f64>
}
func.func @g(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@+1 {{result 1 of @rule must have type tensor<f32>, found tensor<f64>}}
  %a = ad.custom_jvp @f tangents @rule(%x) : (tensor<f32>) -> tensor<f32>
  return %a : tensor<f32>
}
