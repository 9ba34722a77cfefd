// One dense layer, relu(x w + b): the program that docs/architecture.md shows at every level.
//
//   gradir-opt examples/layer.mlir -p 'to-structured{target=cpu},to-buffers,to-loops' --print-ir-after-all

func.func @layer(%x: tensor<128x784xf32>, %w: tensor<784x512xf32>, %b: tensor<512xf32>) -> tensor<128x512xf32> {
  %0 = nd.dot_general %x, %w contract [1] x [0] : tensor<128x784xf32>, tensor<784x512xf32> -> tensor<128x512xf32>
  %1 = nd.broadcast %b dims [1] : tensor<512xf32> -> tensor<128x512xf32>
  %2 = nd.add %0, %1 : tensor<128x512xf32>
  %3 = nd.relu %2 : tensor<128x512xf32>
  return %3 : tensor<128x512xf32>
}
