// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// -1 in sizes stands for a run-time size of the result.

func.func @f(%x: tensor<4xf32>, %s: tensor<i32>) {
  // expected-error@+1 {{nd.dynamic_slice: dim 0: sizes has -1, result has 4; -1 stands for a run-time size}}
  %0 = nd.dynamic_slice %x, %s sizes [-1] : tensor<4xf32>, tensor<i32> -> tensor<4xf32>
  return
}
