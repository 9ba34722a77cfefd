// RUN: gradir-opt %s -p canonicalize --split-input-file | filecheck %s

// CHECK-LABEL: func.func @elements
// CHECK-NEXT:    func.return %b, %a, %t : f32, f32, tensor<f32>
func.func @elements(%a: f32, %b: f32, %t: tensor<f32>, %i: index) -> (f32, f32, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = tensor.from_elements %a, %a, %b, %a : tensor<2x2xf32>
  %x = tensor.extract %v[%c1, %c0] : tensor<2x2xf32>
  %s = tensor.splat %a : tensor<4xf32>
  %y = tensor.extract %s[%i] : tensor<4xf32>
  %e = tensor.extract %t[] : tensor<f32>
  %u = tensor.from_elements %e : tensor<f32>
  return %x, %y, %u : f32, f32, tensor<f32>
}

// -----

// CHECK-LABEL: func.func @sizes
// CHECK-DAG:     %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG:     %[[D:.*]] = tensor.dim %x
// CHECK:         func.return %[[C8]], %[[D]], %y
func.func @sizes(%x: tensor<?x8xf32>, %y: tensor<4xf32>) -> (index, index, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tensor.dim %x, %c1 : tensor<?x8xf32>
  %b = tensor.dim %x, %c0 : tensor<?x8xf32>
  %c = tensor.cast %y : tensor<4xf32> to tensor<4xf32>
  return %a, %b, %c : index, index, tensor<4xf32>
}

// -----

// Slices of everything; a slice with a step or an offset stays.
// CHECK-LABEL: func.func @slices
// CHECK-NEXT:    %[[S:.*]] = tensor.insert_slice %y into %x[1, 0]
// CHECK-NEXT:    func.return %x, %z, %[[S]]
func.func @slices(%x: tensor<4x8xf32>, %y: tensor<2x8xf32>, %z: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %a = tensor.extract_slice %x[0, 0] [4, 8] [1, 1] : tensor<4x8xf32> to tensor<4x8xf32>
  %b = tensor.insert_slice %z into %x[0, 0] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<4x8xf32>
  %c = tensor.insert_slice %y into %x[1, 0] [2, 8] [1, 1] : tensor<2x8xf32> into tensor<4x8xf32>
  return %a, %b, %c : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
