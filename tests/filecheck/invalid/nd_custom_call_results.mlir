// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A function with a shape rule gives what the rule says.

func.func @f(%x: tensor<3xf32>) {
  // expected-error@+1 {{nd.custom_call @print: its shape rule gives 0 results, found 1}}
  %0 = nd.custom_call @print(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return
}
