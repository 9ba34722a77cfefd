// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{nd.custom_call @g: complex_operands names position 0, which must have a last dimension of 2, found tensor<4x3xf32>}}
  %0 = nd.custom_call @g(%x) {complex_operands = array<i64: 0>} : (tensor<4x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{nd.custom_call @g: complex_results names position 1 of 1}}
  %0 = nd.custom_call @g(%x) {complex_results = array<i64: 1>} : (tensor<4x2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected (operand types) -> result types, found tensor<4xf32>}}
  %0 = nd.custom_call @g(%x) : tensor<4xf32>
  return
}
