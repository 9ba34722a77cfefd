// RUN: gradir-opt %s -p order-kernels --split-input-file | filecheck %s

func.func private @kernel(%x: tensor<8xf32>, %o: tensor<8xf32>) -> tensor<8xf32> attributes {gradir.kernel = #kernel.elementwise<>} {
  return %o : tensor<8xf32>
}

// The call reads a slice of %s, so it comes before the insertion into %s.
// CHECK-LABEL: func.func @reader_first
// CHECK:         %[[R:.*]] = tensor.extract_slice %s
// CHECK:         func.call @kernel(%[[R]],
// CHECK:         tensor.insert_slice %x into %s
func.func @reader_first(%s: tensor<4x8xf32>, %x: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
  %n = tensor.insert_slice %x into %s[1, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>
  %r = tensor.extract_slice %s[1, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<8xf32>
  %e = tensor.empty() : tensor<8xf32>
  %y = func.call @kernel(%r, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %n, %y : tensor<4x8xf32>, tensor<8xf32>
}

// A loop that carries %s writes over it: whoever reads %s afterwards goes first.
// CHECK-LABEL: func.func @before_the_loop
// CHECK:         func.call @kernel(%s,
// CHECK:         scf.for
func.func @before_the_loop(%s: tensor<8xf32>, %n: index) -> (tensor<8xf32>, tensor<8xf32>) {
  %c1 = arith.constant 1 : index
  %l = scf.for %i = %c1 to %n step %c1 iter_args(%a = %s) -> (tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %y = func.call @kernel(%a, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  %e = tensor.empty() : tensor<8xf32>
  %y = func.call @kernel(%s, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %l, %y : tensor<8xf32>, tensor<8xf32>
}

// -----

// A function that is no kernel may have effects: its calls keep their order.
func.func private @effect(tensor<8xf32>) -> tensor<8xf32>
// CHECK-LABEL: func.func @effects
// CHECK:         func.call @effect(%x)
// CHECK:         func.call @effect(%y)
func.func @effects(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %a = func.call @effect(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %b = func.call @effect(%y) : (tensor<8xf32>) -> tensor<8xf32>
  return %b : tensor<8xf32>
}
