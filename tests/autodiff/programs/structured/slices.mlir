func.func @f(%x: tensor<4x6xf64>, %w: tensor<2x3xf64>, %s: tensor<f64>) -> (tensor<6x10xf64>, tensor<24xf64>, tensor<4x2x3xf64>, tensor<3x2xf64>) {
  %c1 = arith.constant 1 : index
  %v = tensor.extract %s[] : tensor<f64>
  %sl = tensor.extract_slice %x[%c1, 2] [2, 3] [1, 1] : tensor<4x6xf64> to tensor<2x3xf64>
  %row = tensor.extract_slice %x[%c1, 0] [1, 6] [1, 1] : tensor<4x6xf64> to tensor<6xf64>
  %in = tensor.insert_slice %w into %x[0, 1] [2, 3] [2, 2] : tensor<2x3xf64> into tensor<4x6xf64>
  %in2 = tensor.insert_slice %row into %in[2, 0] [1, 6] [1, 1] : tensor<6xf64> into tensor<4x6xf64>
  %in3 = tensor.insert %v into %in2[%c1, %c1] : tensor<4x6xf64>
  %sq = arith.mulf %v, %v : f64
  %p = tensor.pad %in3 low[1, 2] high[1, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %sq : f64
  } : tensor<4x6xf64> to tensor<6x10xf64>
  %col = tensor.collapse_shape %in3 [[0, 1]] : tensor<4x6xf64> into tensor<24xf64>
  %ex = tensor.expand_shape %in3 [[0], [1, 2]] output_shape [4, 2, 3] : tensor<4x6xf64> into tensor<4x2x3xf64>
  %fe = tensor.from_elements %v, %sq, %v, %sq, %v, %sq : tensor<3x2xf64>
  return %p, %col, %ex, %fe : tensor<6x10xf64>, tensor<24xf64>, tensor<4x2x3xf64>, tensor<3x2xf64>
}
