// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A custom call names a function.

func.func @f(%x: tensor<f32>) {
  // expected-error@+1 {{nd.custom_call: expected the name of a function, found ""}}
  "nd.custom_call"(%x) <{callee = ""}> : (tensor<f32>) -> ()
  return
}
