// RUN: gradir-opt %s -p 'to-structured{target=cpu},to-buffers,to-loops' --check-semantics -o %t

func.func @att(%q: tensor<1x3x4x2xf32>, %k: tensor<1x5x2x2xf32>, %m: tensor<1x4x3x5xi1>) -> tensor<1x3x4x2xf32> {
  %0 = nd.attention %q, %k, %k mask %m causal scale 0.5 : tensor<1x3x4x2xf32>, tensor<1x5x2x2xf32>, tensor<1x5x2x2xf32>, tensor<1x4x3x5xi1> -> tensor<1x3x4x2xf32>
  return %0 : tensor<1x3x4x2xf32>
}
func.func @bn(%x: tensor<?x3xf32, ["b", ""]>, %s: tensor<3xf32>) -> (tensor<?x3xf32, ["b", ""]>, tensor<3xf32>) {
  %0, %1, %2 = nd.batch_norm_train %x, %s, %s dim 1 eps 1.0e-05 : tensor<?x3xf32, ["b", ""]>, tensor<3xf32>, tensor<3xf32>
  nd.print "mean {}", %1 : tensor<3xf32>
  return %0, %2 : tensor<?x3xf32, ["b", ""]>, tensor<3xf32>
}
func.func @rnd(%k: tensor<2xui32>) -> (tensor<3x5xui64>, tensor<4xui32>, tensor<4xui32>) {
  %0 = nd.random_bits %k : tensor<2xui32> -> tensor<3x5xui64>
  %1 = nd.random_bits %k : tensor<2xui32> -> tensor<4xui32>
  %2, %3 = nd.threefry2x32 %k, %1, %1 : tensor<2xui32>, tensor<4xui32>
  return %0, %2, %3 : tensor<3x5xui64>, tensor<4xui32>, tensor<4xui32>
}
