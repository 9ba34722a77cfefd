// RUN: gradir-opt %s -p 'to-structured{target=cuda},to-buffers,lower-kernels' --split-input-file | filecheck %s

// 16 threads share a row, four elements each, read once; two rows a warp: a butterfly of shuffles joins the threads of a row, and all
// of them compute before the branch that keeps the threads without a row from writing.
// CHECK-LABEL: gpu.module @kernels
// CHECK:         gpu.func @{{.*}} kernel attributes {known_block_size = array<i32: 16, 16, 1>}
// CHECK:           gpu.thread_id x
// CHECK:           vector.load {{.*}} {alignment = 16 : i64} : memref<100x64xf32>, vector<4xf32>
// CHECK-NOT:       vector.load
// CHECK:           arith.maximumf
// CHECK-COUNT-4:   gpu.shuffle xor
// CHECK:           math.exp {{.*}} : vector<4xf32>
// CHECK-COUNT-4:   gpu.shuffle xor
// CHECK:           scf.if
// CHECK-NEXT:        vector.store {{.*}} {alignment = 16 : i64}
// CHECK:         func.func private
// CHECK:           gpu.launch_func @kernels::@{{.*}} blocks in
func.func @softmax(%x: tensor<100x64xf32>) -> tensor<100x64xf32> {
  %y = nd.softmax %x dim 1 : tensor<100x64xf32>
  return %y : tensor<100x64xf32>
}

// -----

// A contraction: two stages of tiles in shared memory, one barrier a step, a 4x4 tile of registers a thread, which goes
// through shared memory once more so that neighbouring threads write neighbouring elements.
// CHECK-LABEL: gpu.module @kernels
// CHECK:         gpu.func @contraction_0{{.*}} workgroup({{.*}} : memref<{{[0-9]+}}xi8, #gpu.address_space<workgroup>>
// CHECK:           nvgpu.device_async_wait {{.*}} {numGroups = 0 : i32}
// CHECK-NEXT:      gpu.barrier
// CHECK:           scf.for
// CHECK:             nvgpu.device_async_copy
// CHECK:             vector.outerproduct {{.*}} : vector<4xf32>, vector<4xf32>
// CHECK:             nvgpu.device_async_wait {{.*}} {numGroups = 0 : i32}
// CHECK-NEXT:        gpu.barrier
// CHECK:           vector.extract {{.*}} : vector<4xf32> from vector<4x4xf32>
// CHECK:           vector.store
// CHECK:           gpu.barrier
func.func @matmul(%x: tensor<128x32xf32>, %w: tensor<32x64xf32>) -> tensor<128x64xf32> {
  %y = nd.dot_general %x, %w contract [1] x [0] : tensor<128x32xf32>, tensor<32x64xf32> -> tensor<128x64xf32>
  return %y : tensor<128x64xf32>
}

// -----

// Elementwise: a thread reads 16 bytes of every operand at once; two accesses are on their way before the first is written.
// CHECK-LABEL: gpu.module @kernels
// CHECK:         gpu.func @elementwise_0
// CHECK-COUNT-2:   vector.load {{.*}} {alignment = 16 : i64} : memref<4194304xf32>, vector<4xf32>
// CHECK:           vector.store {{.*}} {alignment = 16 : i64}
// CHECK:           vector.store {{.*}} {alignment = 16 : i64}
func.func @add(%x: tensor<2048x2048xf32>) -> tensor<2048x2048xf32> {
  %y = nd.add %x, %x : tensor<2048x2048xf32>
  return %y : tensor<2048x2048xf32>
}

// -----

// Rows of 37 elements have no common alignment: one element at a time, guarded at the end.
// CHECK-LABEL: gpu.module @kernels
// CHECK:         gpu.func @elementwise_0
// CHECK:           scf.if
// CHECK:             memref.load
// CHECK:             memref.store
// CHECK-NOT:       vector.
func.func @odd(%x: tensor<5x37xf32>) -> tensor<5x37xf32> {
  %y = nd.add %x, %x : tensor<5x37xf32>
  return %y : tensor<5x37xf32>
}
