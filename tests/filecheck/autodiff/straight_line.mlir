// RUN: gradir-opt -p differentiate %s --split-input-file | filecheck %s

// %h is kept; tanh costs less than to keep its result, and 1 - t*t would be ready early. Both are computed where the cotangent is,
// from %h behind a barrier that waits for what entered the last contraction (the cotangent of %y), not for what came out of it (%da).
// CHECK-LABEL: @loss.grad_0
// CHECK:         %h = nd.dot_general %x, %w
// CHECK-NEXT:    %t = nd.tanh %h
// CHECK-NEXT:    %a = nd.mul %h, %t
// CHECK-NEXT:    %y = nd.dot_general %a, %v
// CHECK:         %[[DY:dy.*]] = nd.add
// CHECK:         %da = nd.dot_general %[[DY]], %v
// CHECK:         %[[H:h_[0-9]+]], %{{.*}} = nd.optimization_barrier %h, %[[DY]] : tensor<64x128xf32>, tensor<64x32xf32>
// CHECK-NEXT:    %[[T:t_[0-9]+]] = nd.tanh %[[H]]
// CHECK-NEXT:    nd.mul_strong %da, %[[T]]
// CHECK:         %[[S:.*]] = nd.mul %[[T]], %[[T]]
// CHECK:         nd.sub %{{.*}}, %[[S]]
func.func private @loss(%x: tensor<64x32xf32>, %w: tensor<32x128xf32>, %v: tensor<128x32xf32>) -> tensor<f32> {
  %h = nd.dot_general %x, %w contract [1] x [0] : tensor<64x32xf32>, tensor<32x128xf32> -> tensor<64x128xf32>
  %t = nd.tanh %h : tensor<64x128xf32>
  %a = nd.mul %h, %t : tensor<64x128xf32>
  %y = nd.dot_general %a, %v contract [1] x [0] : tensor<64x128xf32>, tensor<128x32xf32> -> tensor<64x32xf32>
  %q = nd.mul %y, %y : tensor<64x32xf32>
  %l = nd.reduce_sum %q dims [0, 1] : tensor<64x32xf32> -> tensor<f32>
  return %l : tensor<f32>
}
func.func @f(%x: tensor<64x32xf32>, %w: tensor<32x128xf32>, %v: tensor<128x32xf32>) -> tensor<32x128xf32> {
  %g = ad.grad @loss(%x, %w, %v) wrt [1] : (tensor<64x32xf32>, tensor<32x128xf32>, tensor<128x32xf32>) -> tensor<32x128xf32>
  return %g : tensor<32x128xf32>
}

// -----

// What a contraction reads as it is, %t for the derivative by %v, is kept; what the backward part makes of it, 1 - t*t, still comes late.
// CHECK-LABEL: @loss.grad_0
// CHECK:         %dv = nd.dot_general %t, %[[DY:dy.*]] contract
// CHECK:         %[[T:t_[0-9]+]], %{{.*}} = nd.optimization_barrier %t, %[[DY]]
// CHECK-NOT:     nd.tanh
// CHECK:         nd.mul %[[T]], %[[T]]
func.func private @loss(%x: tensor<64x32xf32>, %w: tensor<32x128xf32>, %v: tensor<128x32xf32>) -> tensor<f32> {
  %h = nd.dot_general %x, %w contract [1] x [0] : tensor<64x32xf32>, tensor<32x128xf32> -> tensor<64x128xf32>
  %t = nd.tanh %h : tensor<64x128xf32>
  %y = nd.dot_general %t, %v contract [1] x [0] : tensor<64x128xf32>, tensor<128x32xf32> -> tensor<64x32xf32>
  %q = nd.mul %y, %y : tensor<64x32xf32>
  %l = nd.reduce_sum %q dims [0, 1] : tensor<64x32xf32> -> tensor<f32>
  return %l : tensor<f32>
}
func.func @f(%x: tensor<64x32xf32>, %w: tensor<32x128xf32>, %v: tensor<128x32xf32>) -> (tensor<32x128xf32>, tensor<128x32xf32>) {
  %g:2 = ad.grad @loss(%x, %w, %v) wrt [1, 2] : (tensor<64x32xf32>, tensor<32x128xf32>, tensor<128x32xf32>) -> (tensor<32x128xf32>, tensor<128x32xf32>)
  return %g#0, %g#1 : tensor<32x128xf32>, tensor<128x32xf32>
}

// -----

// Without a contraction forward and backward become one kernel, which stores nothing; and small values are not worth a barrier.
// CHECK-LABEL: @chain.grad_0
// CHECK-NOT:     nd.optimization_barrier
// CHECK-LABEL: @small.grad_0
// CHECK-NOT:     nd.optimization_barrier
func.func private @chain(%x: tensor<65536xf32>) -> tensor<f32> {
  %t = nd.tanh %x : tensor<65536xf32>
  %s = nd.tanh %t : tensor<65536xf32>
  %l = nd.reduce_sum %s dims [0] : tensor<65536xf32> -> tensor<f32>
  return %l : tensor<f32>
}
func.func private @small(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<f32> {
  %h = nd.dot_general %x, %w contract [1] x [0] : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %t = nd.tanh %h : tensor<8x8xf32>
  %y = nd.dot_general %t, %w contract [1] x [0] : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %l = nd.reduce_sum %y dims [0, 1] : tensor<8x8xf32> -> tensor<f32>
  return %l : tensor<f32>
}
func.func @f(%x: tensor<65536xf32>, %w: tensor<8x8xf32>) -> (tensor<65536xf32>, tensor<8x8xf32>) {
  %g = ad.grad @chain(%x) wrt [0] : (tensor<65536xf32>) -> tensor<65536xf32>
  %d = ad.grad @small(%w, %w) wrt [1] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %g, %d : tensor<65536xf32>, tensor<8x8xf32>
}
