// RUN: gradir-translate --to=ptx --target=cuda --cpu=sm_90 %s | filecheck %s

// CHECK:       .target sm_90
// CHECK:       .entry elementwise_0(
// CHECK:       .reqntid 256, 1, 1
// CHECK:       ld.global
// CHECK:       st.global
// CHECK-NOT:   .extern
func.func @f(%x: tensor<1000xf32>, %y: tensor<1000xf32>) -> tensor<1000xf32> {
  %s = nd.add %x, %y : tensor<1000xf32>
  %r = nd.tanh %s : tensor<1000xf32>
  return %r : tensor<1000xf32>
}
