// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// Heads and their size are static.

func.func @f(%q: tensor<1x3x?x8xf32>) {
  // expected-error@+1 {{nd.attention: the numbers of heads must be static, found tensor<1x3x?x8xf32> and tensor<1x3x?x8xf32>}}
  %0 = nd.attention %q, %q, %q scale 1.0 : tensor<1x3x?x8xf32>, tensor<1x3x?x8xf32>, tensor<1x3x?x8xf32> -> tensor<1x3x?x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x3x4x?xf32>) {
  // expected-error@+1 {{nd.attention: the size of a head must be static, found tensor<1x3x4x?xf32>}}
  %0 = nd.attention %q, %q, %q scale 1.0 : tensor<1x3x4x?xf32>, tensor<1x3x4x?xf32>, tensor<1x3x4x?xf32> -> tensor<1x3x4x?xf32>
  return
}
