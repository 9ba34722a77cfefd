// A perceptron of three layers with its loss: forward here, backward asked for by `ad.value_and_grad`.
//
//   gradir-opt examples/mlp.mlir -p 'differentiate,to-structured{target=cpu},to-buffers,to-loops' --print-ir-after-all

func.func private @loss(%w1: tensor<64x48xf32>, %b1: tensor<48xf32>, %w2: tensor<48x32xf32>, %b2: tensor<32xf32>,
                        %w3: tensor<32x10xf32>, %b3: tensor<10xf32>, %x: tensor<32x64xf32>, %labels: tensor<32xi32>) -> tensor<f32> {
  %z1 = nd.dot_general %x, %w1 contract [1] x [0] : tensor<32x64xf32>, tensor<64x48xf32> -> tensor<32x48xf32>
  %bias1 = nd.broadcast %b1 dims [1] : tensor<48xf32> -> tensor<32x48xf32>
  %y1 = nd.add %z1, %bias1 : tensor<32x48xf32>
  %h1 = nd.relu %y1 : tensor<32x48xf32>
  %z2 = nd.dot_general %h1, %w2 contract [1] x [0] : tensor<32x48xf32>, tensor<48x32xf32> -> tensor<32x32xf32>
  %bias2 = nd.broadcast %b2 dims [1] : tensor<32xf32> -> tensor<32x32xf32>
  %y2 = nd.add %z2, %bias2 : tensor<32x32xf32>
  %h2 = nd.tanh %y2 : tensor<32x32xf32>
  %z3 = nd.dot_general %h2, %w3 contract [1] x [0] : tensor<32x32xf32>, tensor<32x10xf32> -> tensor<32x10xf32>
  %bias3 = nd.broadcast %b3 dims [1] : tensor<10xf32> -> tensor<32x10xf32>
  %logits = nd.add %z3, %bias3 : tensor<32x10xf32>
  %losses = nd.cross_entropy %logits, %labels : tensor<32x10xf32>, tensor<32xi32> -> tensor<32xf32>
  %total = nd.reduce_sum %losses dims [0] : tensor<32xf32> -> tensor<f32>
  %count = nd.constant splat(32.0 : f32) : tensor<f32>
  %mean = nd.div %total, %count : tensor<f32>
  return %mean : tensor<f32>
}

func.func @mlp(%w1: tensor<64x48xf32>, %b1: tensor<48xf32>, %w2: tensor<48x32xf32>, %b2: tensor<32xf32>,
               %w3: tensor<32x10xf32>, %b3: tensor<10xf32>, %x: tensor<32x64xf32>, %labels: tensor<32xi32>)
    -> (tensor<f32>, tensor<64x48xf32>, tensor<48xf32>, tensor<48x32xf32>, tensor<32xf32>, tensor<32x10xf32>, tensor<10xf32>) {
  %loss, %dw1, %db1, %dw2, %db2, %dw3, %db3 = ad.value_and_grad @loss(%w1, %b1, %w2, %b2, %w3, %b3, %x, %labels) wrt [0, 1, 2, 3, 4, 5]
      : (tensor<64x48xf32>, tensor<48xf32>, tensor<48x32xf32>, tensor<32xf32>, tensor<32x10xf32>, tensor<10xf32>, tensor<32x64xf32>, tensor<32xi32>)
      -> (tensor<f32>, tensor<64x48xf32>, tensor<48xf32>, tensor<48x32xf32>, tensor<32xf32>, tensor<32x10xf32>, tensor<10xf32>)
  return %loss, %dw1, %db1, %dw2, %db2, %dw3, %db3
      : tensor<f32>, tensor<64x48xf32>, tensor<48xf32>, tensor<48x32xf32>, tensor<32xf32>, tensor<32x10xf32>, tensor<10xf32>
}
