// RUN: gradir-opt %s -p convert-nd-to-linalg --split-input-file --verify-diagnostics

func.func @composite(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{no rule lowers this op to linalg}}
  %0 = nd.softmax %x dim 0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @size(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error@+1 {{a run-time size is not known here}}
  %0 = nd.exp %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}
