// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<2x3xf32>, %s: tensor<f32>, %z: tensor<i16>) {
  // expected-error@+1 {{nd.quantize: element types differ: zero has i16, result has i8}}
  %0 = nd.quantize %x, %s, %z : tensor<2x3xf32>, tensor<f32>, tensor<i16> -> tensor<2x3xi8>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<2xf32>, %z: tensor<2xi8>) {
  // expected-error@+1 {{nd.quantize: scale must have shape [3], found [2]}}
  %0 = nd.quantize %x, %s, %z axis 1 : tensor<2x3xf32>, tensor<2xf32>, tensor<2xi8> -> tensor<2x3xi8>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %z: tensor<3xi8>) {
  // expected-error@+1 {{nd.quantize: scale must have shape [], found [3]}}
  %0 = nd.quantize %x, %s, %z : tensor<2x3xf32>, tensor<3xf32>, tensor<3xi8> -> tensor<2x3xi8>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %z: tensor<3xi8>) {
  // expected-error@+1 {{nd.quantize: axis names dimension 2, operand has rank 2}}
  %0 = nd.quantize %x, %s, %z axis 2 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xi8> -> tensor<2x3xi8>
  return
}

// -----

func.func @f(%x: tensor<2xf32>, %s: tensor<f32>, %z: tensor<i8>) {
  // expected-error@+1 {{nd.quantize: range must be [low, high] within [-128, 127], found [0, 255]}}
  %0 = nd.quantize %x, %s, %z range [0, 255] : tensor<2xf32>, tensor<f32>, tensor<i8> -> tensor<2xi8>
  return
}

// -----

func.func @f(%x: tensor<2xi8>, %s: tensor<f64>, %z: tensor<i8>) {
  // expected-error@+1 {{nd.dequantize: element types differ: scale has f64, result has f32}}
  %0 = nd.dequantize %x, %s, %z : tensor<2xi8>, tensor<f64>, tensor<i8> -> tensor<2xf32>
  return
}
