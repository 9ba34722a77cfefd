// RUN: gradir-opt %s --load %S/gradir_softsign.py -p act-raise,dce | filecheck %s
//
// The formula written out, and its derivative asked for: see README.md.

// CHECK-LABEL: func.func private @loss
// CHECK-NEXT:    %[[S:.*]] = act.softsign %x : tensor<8xf32>
// CHECK-NEXT:    nd.reduce_sum %[[S]]
func.func private @loss(%x: tensor<8xf32>) -> tensor<f32> {
  %one = nd.constant splat(1.0 : f32) : tensor<8xf32>
  %abs = nd.abs %x : tensor<8xf32>
  %den = nd.add %one, %abs : tensor<8xf32>
  %y = nd.div %x, %den : tensor<8xf32>
  %total = nd.reduce_sum %y dims [0] : tensor<8xf32> -> tensor<f32>
  return %total : tensor<f32>
}

func.func @step(%x: tensor<8xf32>) -> (tensor<f32>, tensor<8xf32>) {
  %loss, %dx = ad.value_and_grad @loss(%x) wrt [0] : (tensor<8xf32>) -> (tensor<f32>, tensor<8xf32>)
  return %loss, %dx : tensor<f32>, tensor<8xf32>
}
