func.func @f(%x: tensor<3x4x5xf64>, %p: tensor<1x4xf64>) -> (tensor<3x4x5xf64>, tensor<1x4xf64>, tensor<4xf64>) {
  %front = tensor.extract_slice %x[1, 0, 2] [1, 4, 1] [1, 1, 1] : tensor<3x4x5xf64> to tensor<1x4xf64>
  %beside = tensor.extract_slice %x[1, 0, 3] [1, 4, 1] [1, 1, 1] : tensor<3x4x5xf64> to tensor<1x4xf64>
  %back = tensor.extract_slice %x[2, 0, 2] [1, 4, 1] [1, 1, 1] : tensor<3x4x5xf64> to tensor<4x1xf64>
  %line = tensor.extract_slice %x[0, 0, 0] [1, 4, 1] [1, 1, 1] : tensor<3x4x5xf64> to tensor<4xf64>
  %product = arith.mulf %front, %p : tensor<1x4xf64>
  %sum = arith.addf %product, %beside : tensor<1x4xf64>
  %squares = arith.mulf %line, %line : tensor<4xf64>
  %0 = tensor.insert_slice %sum into %x[1, 0, 2] [1, 4, 1] [1, 1, 1] : tensor<1x4xf64> into tensor<3x4x5xf64>
  %1 = tensor.insert_slice %back into %0[0, 0, 1] [1, 4, 1] [1, 1, 1] : tensor<4x1xf64> into tensor<3x4x5xf64>
  return %1, %sum, %squares : tensor<3x4x5xf64>, tensor<1x4xf64>, tensor<4xf64>
}
