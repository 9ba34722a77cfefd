// RUN: gradir-opt %s -p 'to-structured{target=cuda},to-buffers,lower-kernels' --split-input-file | filecheck %s

// A row a warp: lanes sweep the row, a butterfly of shuffles joins them, the row is swept again to be written.
// CHECK-LABEL: gpu.module @kernels
// CHECK:         gpu.func @{{.*}} kernel attributes {known_block_size = array<i32: 32, 8, 1>}
// CHECK:           gpu.thread_id x
// CHECK:           arith.maximumf
// CHECK-COUNT-5:   gpu.shuffle xor
// CHECK:           math.exp
// CHECK:           memref.store
// CHECK:         func.func private
// CHECK:           gpu.launch_func @kernels::@{{.*}} blocks in
func.func @softmax(%x: tensor<100x64xf32>) -> tensor<100x64xf32> {
  %y = nd.softmax %x dim 1 : tensor<100x64xf32>
  return %y : tensor<100x64xf32>
}

// -----

// A contraction: tiles staged in shared memory between two barriers, a 4x4 tile of registers a thread, which goes
// through shared memory once more so that neighbouring threads write neighbouring elements.
// CHECK-LABEL: gpu.module @kernels
// CHECK:         gpu.func @contraction_0{{.*}} workgroup({{.*}} : memref<16x68xf32, #gpu.address_space<workgroup>>
// CHECK:           scf.for
// CHECK:             gpu.barrier
// CHECK:             vector.outerproduct {{.*}} : vector<4xf32>, vector<4xf32>
// CHECK:             gpu.barrier
// CHECK:           vector.extract {{.*}} : vector<4xf32> from vector<4x4xf32>
// CHECK:           vector.store
// CHECK:           gpu.barrier
func.func @matmul(%x: tensor<128x32xf32>, %w: tensor<32x64xf32>) -> tensor<128x64xf32> {
  %y = nd.dot_general %x, %w contract [1] x [0] : tensor<128x32xf32>, tensor<32x64xf32> -> tensor<128x64xf32>
  return %y : tensor<128x64xf32>
}
