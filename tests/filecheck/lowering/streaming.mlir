// RUN: gradir-opt %s -p 'to-structured,to-buffers,lower-kernels' --split-input-file | filecheck %s
// RUN: gradir-opt %s -p 'to-structured,to-buffers,to-loops' --split-input-file --check-semantics

// Operands of 3 * 4 KB do not stay in a last cache of 8 KB: the sum is stored past it, where it turns out to be aligned.
// CHECK-LABEL: func.func private @elementwise_0
// CHECK-SAME:    stream = [0]
// CHECK-SAME:    stored past them
// CHECK:         %[[OUT:.*]] = memref.collapse_shape %0
// CHECK:         %[[P:.*]] = "memref.extract_aligned_pointer_as_index"(%[[OUT]])
// CHECK:         %[[REST:.*]] = arith.remui %[[P]]
// CHECK:         %[[ALIGNED:.*]] = arith.cmpi eq, %[[REST]]
// CHECK:         scf.for
// CHECK:           %[[SUM:.*]] = arith.addf {{.*}} : vector<16xf32>
// CHECK:           scf.if %[[ALIGNED]] {
// CHECK-NEXT:        vector.store %[[SUM]], %[[OUT]][{{.*}}] {alignment = 64 : i64, nontemporal = true}
// CHECK-NEXT:      } else {
// CHECK-NEXT:        vector.store %[[SUM]], %[[OUT]][{{.*}}] : memref
builtin.module attributes {gradir.target = #target.cpu<"znver3", l3 = 8192>} {
  func.func @add(%x: tensor<16x64xf32>, %y: tensor<16x64xf32>) -> tensor<16x64xf32> {
    %0 = nd.add %x, %y : tensor<16x64xf32>
    return %0 : tensor<16x64xf32>
  }
}

// -----

// A polynomial takes longer than the memory; a result that stays in the cache is stored there; nothing is known without a last cache.
// CHECK-NOT: stream
// CHECK-NOT: nontemporal
builtin.module attributes {gradir.target = #target.cpu<"znver3", l3 = 8192>} {
  func.func @power(%x: tensor<16x64xf32>, %y: tensor<2x64xf32>) -> (tensor<16x64xf32>, tensor<2x64xf32>) {
    %0 = nd.exp %x : tensor<16x64xf32>
    %1 = nd.add %y, %y : tensor<2x64xf32>
    return %0, %1 : tensor<16x64xf32>, tensor<2x64xf32>
  }
}

// -----

// Rows of 256 bytes are multiples of a line. A row in L1 is swept three times; meanwhile the next one is asked for. The powers of x - max(x) know
// that they are at most 1, and the sum is divided by once a row.
// CHECK-LABEL: func.func private @rows_0
// CHECK:         %[[ALIGNED:.*]] = arith.cmpi eq
// CHECK:         scf.for %[[ROW:.*]] =
// CHECK:           scf.for %{{.*}} iter_args(
// CHECK:             arith.maximumf
// CHECK:           scf.for %[[J:.*]] = {{.*}} iter_args(
// CHECK:             math.exp {{.*}} {gradir.nonpositive} : vector<32xf32>
// CHECK:             %[[NEXT:.*]] = arith.addi %[[ROW]]
// CHECK:             memref.prefetch %x[%[[NEXT]], %[[J]]], read, locality<3>, data : memref<16x64xf32>
// CHECK:           arith.divf {{.*}} : f32
// CHECK:           scf.for
// CHECK:             arith.mulf {{.*}} : vector<16xf32>
// CHECK:             scf.if %[[ALIGNED]]
// CHECK:               nontemporal = true
builtin.module attributes {gradir.target = #target.cpu<"znver3", l2 = 2048, l3 = 8192>} {
  func.func @softmax(%x: tensor<16x64xf32>) -> tensor<16x64xf32> {
    %0 = nd.softmax %x dim 1 : tensor<16x64xf32>
    return %0 : tensor<16x64xf32>
  }
}

// -----

// Rows of 244 bytes start anywhere: nothing is stored past the caches.
// CHECK-LABEL: func.func private @rows_0
// CHECK-NOT:     nontemporal
builtin.module attributes {gradir.target = #target.cpu<"znver3", l3 = 8192>} {
  func.func @softmax_of_odd_rows(%x: tensor<16x61xf32>) -> tensor<16x61xf32> {
    %0 = nd.softmax %x dim 1 : tensor<16x61xf32>
    return %0 : tensor<16x61xf32>
  }
}

// -----

// The maximum of something else is no bound.
// CHECK-LABEL: func.func @not_its_maximum
// CHECK-NOT:     nonpositive
func.func @not_its_maximum(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %m = nd.reduce_max %y dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %b = nd.broadcast %m dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %s = nd.sub %x, %b : tensor<4x8xf32>
  %e = nd.exp %s : tensor<4x8xf32>
  return %e : tensor<4x8xf32>
}
