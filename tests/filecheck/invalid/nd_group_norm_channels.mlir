// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// The number of channels is static.

func.func @f(%x: tensor<2x3x?xf32>, %s: tensor<?xf32>) {
  // expected-error@+1 {{nd.group_norm: the number of channels must be static, found tensor<2x3x?xf32>}}
  %0 = nd.group_norm %x, %s, %s groups 2 eps 1.0e-05 : tensor<2x3x?xf32>, tensor<?xf32>, tensor<?xf32>
  return
}
