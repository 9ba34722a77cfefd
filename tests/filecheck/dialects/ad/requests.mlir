// RUN: gradir-opt %s | filecheck %s
// RUN: gradir-opt %s --print-op-generic | gradir-opt - | filecheck %s

// CHECK-LABEL: func.func @step
// CHECK: ad.value_and_grad @loss(%{{.*}}, %{{.*}}) wrt [0] : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<2xf32>)
// CHECK: ad.grad @loss(%{{.*}}, %{{.*}}) wrt [1, 0] : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
// CHECK: ad.vjp @loss(%{{.*}}, %{{.*}}, %{{.*}}) wrt [0] : (tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> (tensor<f32>, tensor<2xf32>)
// CHECK: ad.vjp @loss(%{{.*}}, %{{.*}}, %{{.*}}) wrt [0] split : (tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> (tensor<f32>, tensor<2xf32>)
// CHECK: ad.jvp @loss(%{{.*}}, %{{.*}}, %{{.*}}) wrt [1] : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
// CHECK: ad.batch @loss(%{{.*}}, %{{.*}}) over [0] : (tensor<?x2xf32, ["n", ""]>, tensor<2xf32>) -> tensor<?xf32, ["n"]>
// CHECK: ad.stop_gradient %{{.*}} : tensor<2xf32>
func.func @loss(%w: tensor<2xf32>, %x: tensor<2xf32>) -> tensor<f32> {
  %0 = nd.dot_general %w, %x contract [0] x [0] : tensor<2xf32>, tensor<2xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @step(%w: tensor<2xf32>, %x: tensor<2xf32>, %ct: tensor<f32>, %many: tensor<?x2xf32, ["n", ""]>) {
  %0, %1 = ad.value_and_grad @loss(%w, %x) wrt [0] : (tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<2xf32>)
  %2, %3 = ad.grad @loss(%w, %x) wrt [1, 0] : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  %4, %5 = ad.vjp @loss(%w, %x, %ct) wrt [0] : (tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> (tensor<f32>, tensor<2xf32>)
  %6, %7 = ad.vjp @loss(%w, %x, %ct) wrt [0] split : (tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> (tensor<f32>, tensor<2xf32>)
  %9, %10 = ad.jvp @loss(%w, %x, %w) wrt [1] : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<f32>)
  %11 = ad.batch @loss(%many, %x) over [0] : (tensor<?x2xf32, ["n", ""]>, tensor<2xf32>) -> tensor<?xf32, ["n"]>
  %8 = ad.stop_gradient %w : tensor<2xf32>
  return
}
