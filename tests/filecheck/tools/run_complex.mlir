// RUN: gradir-run %s --entry=f '--input=2xcomplex<f32>=[(3,4),(0,-1)]' | filecheck %s
// RUN: gradir-run %s --entry=f '--input=2xcomplex<f32>=[(3,4),(0,-1)]' --target=reference | filecheck %s

// CHECK: 2xcomplex<f32>=[(6.0,-8.0),(0.0,2.0)]
// CHECK: 2xf32=[5.0,1.0]
func.func @f(%z: tensor<2xcomplex<f32>>) -> (tensor<2xcomplex<f32>>, tensor<2xf32>) {
  %c = nd.conj %z : tensor<2xcomplex<f32>>
  %d = nd.add %c, %c : tensor<2xcomplex<f32>>
  %a = nd.abs %z : tensor<2xcomplex<f32>>
  return %d, %a : tensor<2xcomplex<f32>>, tensor<2xf32>
}
