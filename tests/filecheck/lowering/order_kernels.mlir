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

// -----

func.func private @one(%x: tensor<64xf32>, %o: tensor<64xf32>) -> tensor<64xf32> attributes {gradir.kernel = #kernel.elementwise<>} {
  return %o : tensor<64xf32>
}
func.func private @two(%x: tensor<64xf32>, %y: tensor<64xf32>, %o: tensor<64xf32>) -> tensor<64xf32> attributes {gradir.kernel = #kernel.elementwise<>} {
  return %o : tensor<64xf32>
}
func.func private @wide(%x: tensor<64xf32>, %o: tensor<512xf32>) -> tensor<512xf32> attributes {gradir.kernel = #kernel.elementwise<>} {
  return %o : tensor<512xf32>
}
func.func private @narrow(%x: tensor<512xf32>, %o: tensor<64xf32>) -> tensor<64xf32> attributes {gradir.kernel = #kernel.elementwise<>} {
  return %o : tensor<64xf32>
}
func.func private @grow(%x: tensor<512xf32>, %o: tensor<1024xf32>) -> tensor<1024xf32> attributes {gradir.kernel = #kernel.elementwise<>} {
  return %o : tensor<1024xf32>
}

// What an entry returns lies with its caller and takes no memory here: the update that is the last reader of %h comes first.
// CHECK-LABEL: func.func @update_first
// CHECK:         %[[H:.*]] = func.call @wide(%x,
// CHECK:         func.call @grow(%[[H]],
// CHECK:         func.call @wide(
func.func @update_first(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<1024xf32>) {
  %0 = tensor.empty() : tensor<512xf32>
  %h = func.call @wide(%x, %0) : (tensor<64xf32>, tensor<512xf32>) -> tensor<512xf32>
  %1 = tensor.empty() : tensor<512xf32>
  %g = func.call @wide(%x, %1) : (tensor<64xf32>, tensor<512xf32>) -> tensor<512xf32>
  %2 = tensor.empty() : tensor<64xf32>
  %r = func.call @narrow(%g, %2) : (tensor<512xf32>, tensor<64xf32>) -> tensor<64xf32>
  %3 = tensor.empty() : tensor<1024xf32>
  %u = func.call @grow(%h, %3) : (tensor<512xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  return %r, %u : tensor<64xf32>, tensor<1024xf32>
}

// %z takes memory and frees none: it waits for @two, though it is ready at once and takes less than @wide does.
// CHECK-LABEL: func.func @wait_for_the_reader
// CHECK:         func.call @wide(
// CHECK:         %[[N:.*]] = func.call @narrow(
// CHECK:         %[[Z:.*]] = func.call @one(%y,
// CHECK:         func.call @two(%[[N]], %[[Z]],
func.func @wait_for_the_reader(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %0 = tensor.empty() : tensor<64xf32>
  %z = func.call @one(%y, %0) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %1 = tensor.empty() : tensor<512xf32>
  %w = func.call @wide(%x, %1) : (tensor<64xf32>, tensor<512xf32>) -> tensor<512xf32>
  %2 = tensor.empty() : tensor<64xf32>
  %n = func.call @narrow(%w, %2) : (tensor<512xf32>, tensor<64xf32>) -> tensor<64xf32>
  %3 = tensor.empty() : tensor<64xf32>
  %r = func.call @two(%n, %z, %3) : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// -----

func.func private @zero(%o: tensor<8xf32>) -> tensor<8xf32> attributes {gradir.kernel = #kernel.elementwise<>} {
  return %o : tensor<8xf32>
}
func.func private @wide(%x: tensor<64xf32>, %o: tensor<512xf32>) -> tensor<512xf32> attributes {gradir.kernel = #kernel.elementwise<>} {
  return %o : tensor<512xf32>
}
func.func private @narrow(%x: tensor<512xf32>, %o: tensor<64xf32>) -> tensor<64xf32> attributes {gradir.kernel = #kernel.elementwise<>} {
  return %o : tensor<64xf32>
}

// Zeros at the edges of a frame take the memory of all of it: they wait for what the frame will hold.
// CHECK-LABEL: func.func @edges_wait
// CHECK:         func.call @wide
// CHECK:         func.call @narrow
// CHECK:         func.call @zero
// CHECK:         func.call @zero
// CHECK:         func.call @wide
func.func @edges_wait(%x: tensor<64xf32>) -> tensor<512xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %z = func.call @zero(%e) : (tensor<8xf32>) -> tensor<8xf32>
  %f = tensor.empty() : tensor<80xf32>
  %a = tensor.insert_slice %z into %f[0] [8] [1] : tensor<8xf32> into tensor<80xf32>
  %g = tensor.empty() : tensor<8xf32>
  %t = func.call @zero(%g) : (tensor<8xf32>) -> tensor<8xf32>
  %b = tensor.insert_slice %t into %a[72] [8] [1] : tensor<8xf32> into tensor<80xf32>
  %o = tensor.empty() : tensor<512xf32>
  %y = func.call @wide(%x, %o) : (tensor<64xf32>, tensor<512xf32>) -> tensor<512xf32>
  %p = tensor.empty() : tensor<64xf32>
  %v = func.call @narrow(%y, %p) : (tensor<512xf32>, tensor<64xf32>) -> tensor<64xf32>
  %c = tensor.insert_slice %v into %b[8] [64] [1] : tensor<64xf32> into tensor<80xf32>
  %s = tensor.extract_slice %c[4] [64] [1] : tensor<80xf32> to tensor<64xf32>
  %q = tensor.empty() : tensor<512xf32>
  %r = func.call @wide(%s, %q) : (tensor<64xf32>, tensor<512xf32>) -> tensor<512xf32>
  return %r : tensor<512xf32>
}
