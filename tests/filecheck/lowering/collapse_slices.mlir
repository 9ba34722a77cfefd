// RUN: gradir-opt %s -p 'to-structured{target=cpu},to-buffers,to-loops' | filecheck %s

// The rows of a slice of a larger buffer follow each other as those of a buffer of their own do: one loop over 512 elements, so that both
// sums add up in the same order.
// CHECK-LABEL: func.func private @rows
// CHECK:         memref.collapse_shape %{{.*}} {{\[}}[0 : i64, 1 : i64]] : memref<8x64xf32, strided<[64, 1], offset: ?>> into memref<512xf32, strided<[1], offset: ?>>
func.func @f(%x: tensor<4x8x64xf32>, %n: tensor<i64>) -> tensor<f32> {
  %i = tensor.extract %n[] : tensor<i64>
  %at = arith.index_cast %i : i64 to index
  %s = nd.index_at %x[%at] dim 0 : tensor<4x8x64xf32> -> tensor<8x64xf32>
  %r = nd.reduce_sum %s dims [0, 1] : tensor<8x64xf32> -> tensor<f32>
  return %r : tensor<f32>
}
