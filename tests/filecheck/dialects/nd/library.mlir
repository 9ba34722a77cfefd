// RUN: gradir-opt %s | gradir-opt | filecheck %s
// RUN: gradir-opt %s --print-op-generic | gradir-opt | filecheck %s

// CHECK-LABEL: func.func @calls(
func.func @calls(%a: tensor<3x3xf32>, %z: tensor<4x2xf32>) -> tensor<3x3xf32> {
  // CHECK: %l = nd.custom_call @lapack.potrf(%a) {config = {lower = true}} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %l = nd.custom_call @lapack.potrf(%a) {config = {lower = true}} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  // CHECK: nd.custom_call @"a name"(%l) {effects} : (tensor<3x3xf32>) -> ()
  nd.custom_call @"a name"(%l) {effects} : (tensor<3x3xf32>) -> ()
  // CHECK: %two, %three = nd.custom_call @f() {note = "kept"} : () -> (tensor<2xf32>, tensor<i32>)
  %two, %three = nd.custom_call @f() {note = "kept"} : () -> (tensor<2xf32>, tensor<i32>)
  // CHECK: %w = nd.custom_call @conj(%z) {complex_operands = array<i64: 0>, complex_results = array<i64: 0>} : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %w = nd.custom_call @conj(%z) {complex_operands = array<i64: 0>, complex_results = array<i64: 0>} : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %l : tensor<3x3xf32>
}
