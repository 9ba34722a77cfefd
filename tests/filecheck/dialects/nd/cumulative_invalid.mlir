// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2xi1>) {
  // expected-error@+1 {{nd.cumsum: operand must have a float or complex type or an integer wider than i1, found i1}}
  %0 = nd.cumsum %x dim 0 : tensor<2xi1>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.cummax: dim}}
  %0 = nd.cummax %x dim 1 : tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.cumprod: shapes differ: operand has [2], result has [3]}}
  %0 = "nd.cumprod"(%x) <{dim = 0 : i64, reverse = false, exclusive = false}> : (tensor<2xf32>) -> tensor<3xf32>
  return
}
