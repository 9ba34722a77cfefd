// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{nd.fft: operand must have one of complex<f32>, complex<f64>, found f32}}
  %0 = nd.fft %x dims 1 : tensor<4xf32> -> tensor<4xcomplex<f32>>
  return
}

// -----

func.func @f(%x: tensor<4xcomplex<f32>>) {
  // expected-error@+1 {{nd.ifft: dims must be from 1 to 1, the rank of the operand, found 2}}
  %0 = nd.ifft %x dims 2 : tensor<4xcomplex<f32>> -> tensor<4xcomplex<f32>>
  return
}

// -----

func.func @f(%x: tensor<5xf32>) {
  // expected-error@+1 {{nd.rfft: result must have shape [3], found [5]}}
  %0 = nd.rfft %x dims 1 : tensor<5xf32> -> tensor<5xcomplex<f32>>
  return
}

// -----

func.func @f(%x: tensor<5xcomplex<f32>>) {
  // expected-error@+1 {{nd.irfft: operand must have shape [4], found [5]}}
  %0 = nd.irfft %x dims 1 : tensor<5xcomplex<f32>> -> tensor<6xf32>
  return
}

// -----

func.func @f(%x: tensor<5xcomplex<f32>>) {
  // expected-error@+1 {{nd.irfft: precisions differ: operand has complex<f32>, result has f64}}
  %0 = nd.irfft %x dims 1 : tensor<5xcomplex<f32>> -> tensor<8xf64>
  return
}
