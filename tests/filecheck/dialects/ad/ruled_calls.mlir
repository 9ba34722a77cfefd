// RUN: gradir-opt %s | gradir-opt | filecheck %s
// RUN: gradir-opt %s -p differentiate | filecheck %s --check-prefix=PLAIN

func.func private @f(%x: tensor<f32>, %k: tensor<i32>) -> tensor<f32> {
  %a = nd.sin %x : tensor<f32>
  return %a : tensor<f32>
}
func.func private @forward(%x: tensor<f32>, %k: tensor<i32>) -> (tensor<f32>, tensor<f32>) {
  %a = nd.sin %x : tensor<f32>
  return %a, %x : tensor<f32>, tensor<f32>
}
func.func private @backward(%x: tensor<f32>, %ct: tensor<f32>) -> tensor<f32> {
  %a = nd.mul %ct, %x : tensor<f32>
  return %a : tensor<f32>
}
func.func private @tangents(%x: tensor<f32>, %k: tensor<i32>, %t: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %a = nd.sin %x : tensor<f32>
  return %a, %t : tensor<f32>, tensor<f32>
}
// CHECK-LABEL: func.func @g
// CHECK: ad.custom_vjp @f forward @forward backward @backward(%x, %k) : (tensor<f32>, tensor<i32>) -> tensor<f32>
// CHECK: ad.custom_jvp @f tangents @tangents({{.*}}, %k) : (tensor<f32>, tensor<i32>) -> tensor<f32>
// CHECK: ad.checkpoint @f({{.*}}, %k) : (tensor<f32>, tensor<i32>) -> tensor<f32>
// PLAIN-LABEL: func.func @g
// PLAIN-COUNT-3: func.call @f
// PLAIN-NOT: ad.
func.func @g(%x: tensor<f32>, %k: tensor<i32>) -> tensor<f32> {
  %a = ad.custom_vjp @f forward @forward backward @backward(%x, %k) : (tensor<f32>, tensor<i32>) -> tensor<f32>
  %b = ad.custom_jvp @f tangents @tangents(%a, %k) : (tensor<f32>, tensor<i32>) -> tensor<f32>
  %c = ad.checkpoint @f(%b, %k) : (tensor<f32>, tensor<i32>) -> tensor<f32>
  return %c : tensor<f32>
}
