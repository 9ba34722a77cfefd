// RUN: gradir-opt %s -p 'to-structured{target=cuda},to-buffers,lower-kernels' --split-input-file | filecheck %s

// bf16 on tensor cores: a ring of stages filled by asynchronous copies of 16 bytes, pieces of a row exchanged, fragments, 16x8 sums. The
// right operand lies across the depth: it is read transposed. One wait and one barrier a step; sums pass through the same memory.
// CHECK-LABEL: gpu.module @kernels
// CHECK:         gpu.func @contraction_0{{.*}} workgroup(%[[BYTES:.*]] : memref<32768xi8, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 128, 1, 1>}
// CHECK:           memref.view %[[BYTES]][{{.*}}][] : {{.*}} to memref<4x32x64xbf16, #gpu.address_space<workgroup>>
// CHECK:           memref.view %[[BYTES]][{{.*}}][] : {{.*}} to memref<4x64x32xbf16, #gpu.address_space<workgroup>>
// CHECK:           memref.view %[[BYTES]][{{.*}}][] : {{.*}} to memref<32x40xf32, #gpu.address_space<workgroup>>
// CHECK:           arith.xori
// CHECK-COUNT-4:   nvgpu.device_async_copy {{.*}}, 8, {{.*}} {bypassL1}
// CHECK:           nvgpu.device_async_create_group
// CHECK:           nvgpu.device_async_wait {{.*}} {numGroups = 2 : i32}
// CHECK-NEXT:      gpu.barrier
// CHECK:           scf.for
// CHECK:             nvgpu.device_async_copy
// CHECK:             nvgpu.device_async_create_group
// CHECK:             nvgpu.ldmatrix {{.*}} {numTiles = 4 : i32, transpose = true}
// CHECK:             nvgpu.ldmatrix {{.*}} {numTiles = 4 : i32, transpose = false}
// CHECK:             nvgpu.mma.sync({{.*}}) {mmaShape = [16, 8, 16]} : (vector<4x2xbf16>, vector<2x2xbf16>, vector<2x2xf32>) -> vector<2x2xf32>
// CHECK:             nvgpu.device_async_wait {{.*}} {numGroups = 2 : i32}
// CHECK-NEXT:        gpu.barrier
// CHECK:           nvgpu.device_async_wait {{.*}} {numGroups = 0 : i32}
// CHECK:           vector.store {{.*}} : memref<32x40xf32, #gpu.address_space<workgroup>>, vector<2xf32>
// CHECK:           arith.truncf {{.*}} : vector<8xf32> to vector<8xbf16>
// CHECK:           vector.store {{.*}} {alignment = 16 : i64} : memref<64x64xbf16>, vector<8xbf16>
func.func @product(%x: tensor<64x128xbf16>, %w: tensor<128x64xbf16>) -> tensor<64x64xbf16> {
  %y = nd.dot_general %x, %w contract [1] x [0] : tensor<64x128xbf16>, tensor<128x64xbf16> -> tensor<64x64xbf16>
  return %y : tensor<64x64xbf16>
}

// -----

// Few results, long sums: eight blocks share one, a second launch adds their parts in order and goes on with the maximum.
// CHECK-LABEL: gpu.module @kernels
// CHECK:         gpu.func @contraction_0_0
// CHECK:           vector.store {{.*}} : memref<{{[0-9]+}}x1x32x32xf32>, vector<4xf32>
// CHECK:         gpu.func @contraction_0_1
// CHECK-NOT:       gpu.barrier
// CHECK:           vector.load {{.*}} : memref<{{[0-9]+}}x1x32x32xf32>, vector<4xf32>
// CHECK:           arith.addf {{.*}} : vector<4xf32>
// CHECK:           arith.maximumf {{.*}} : vector<4xf32>
// CHECK:         func.func private @contraction_0
// CHECK:           gpu.alloc () : memref<{{[0-9]+}}x1x32x32xf32>
// CHECK:           gpu.launch_func @kernels::@contraction_0_0
// CHECK:           gpu.launch_func @kernels::@contraction_0_1
func.func @long_sums(%x: tensor<32x8192xf32>, %w: tensor<8192x32xf32>) -> tensor<32x32xf32> {
  %y = nd.dot_general %x, %w contract [1] x [0] : tensor<32x8192xf32>, tensor<8192x32xf32> -> tensor<32x32xf32>
  %r = nd.relu %y : tensor<32x32xf32>
  return %r : tensor<32x32xf32>
}

// -----

// More than 48 KB of workgroup memory is asked for by the launch.
// CHECK-LABEL: gpu.module @kernels
// CHECK:           gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
// CHECK:           memref.view {{.*}} to memref<3x128x64xf16, #gpu.address_space<workgroup>>
// CHECK:         arith.constant 147456 : i32
// CHECK:         gpu.launch_func {{.*}} dynamic_shared_memory_size
func.func @large(%x: tensor<4096x4096xf16>, %w: tensor<4096x8192xf16>) -> tensor<4096x8192xf16> {
  %y = nd.dot_general %x, %w contract [1] x [0] : tensor<4096x4096xf16>, tensor<4096x8192xf16> -> tensor<4096x8192xf16>
  return %y : tensor<4096x8192xf16>
}

// -----

// A cast before a product is part of it: 8-bit factors, sums in 32 bits.
// CHECK-LABEL: gpu.module @kernels
// CHECK-NOT:     gpu.func @elementwise
// CHECK:         nvgpu.mma.sync({{.*}}) {mmaShape = [16, 8, 32]} : (vector<4x4xi8>, vector<2x4xi8>, vector<2x2xi32>) -> vector<2x2xi32>
func.func @integers(%x: tensor<64x128xi8>, %w: tensor<64x128xi8>) -> tensor<64x64xi32> {
  %a = nd.convert %x : tensor<64x128xi8> -> tensor<64x128xi32>
  %b = nd.convert %w : tensor<64x128xi8> -> tensor<64x128xi32>
  %y = nd.dot_general %a, %b contract [1] x [1] : tensor<64x128xi32>, tensor<64x128xi32> -> tensor<64x64xi32>
  return %y : tensor<64x64xi32>
}

// -----

// f32 is multiplied exactly: eight by eight sums a thread, no tf32.
// CHECK-LABEL: gpu.module @kernels
// CHECK-NOT:     nvgpu.mma.sync
// CHECK:         nvgpu.device_async_copy {{.*}}, 1
// CHECK:         nvgpu.device_async_copy {{.*}}, 4
// CHECK-COUNT-4: vector.outerproduct {{.*}} : vector<4xf32>, vector<4xf32>
func.func @exact(%x: tensor<2048x2048xf32>, %w: tensor<2048x2048xf32>) -> tensor<2048x2048xf32> {
  %y = nd.dot_general %x, %w contract [1] x [0] : tensor<2048x2048xf32>, tensor<2048x2048xf32> -> tensor<2048x2048xf32>
  return %y : tensor<2048x2048xf32>
}

// -----

// Attention is one kernel, and its scores are in registers: nothing of 256 by 256 elements is in memory.
// CHECK-LABEL: gpu.module @kernels
// CHECK-NOT:     memref<{{.*}}256x256
// CHECK:         gpu.func @chain_0
// CHECK:           scf.for
// CHECK:             nvgpu.mma.sync
// CHECK:             gpu.shuffle xor
// CHECK:             math.exp {{.*}} : vector<2xf32>
// CHECK:             arith.truncf {{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK:             nvgpu.ldmatrix {{.*}} {numTiles = 4 : i32, transpose = true}
// CHECK:             nvgpu.mma.sync
// CHECK:           arith.divf
// CHECK-NOT:     gpu.func
// CHECK:         gpu.launch_func @kernels::@chain_0
func.func @attention(%q: tensor<2x256x64xbf16>, %k: tensor<2x256x64xbf16>, %v: tensor<2x256x64xbf16>) -> tensor<2x256x64xbf16> {
  %s = nd.dot_general %q, %k batch [0] x [0] contract [2] x [2] : tensor<2x256x64xbf16>, tensor<2x256x64xbf16> -> tensor<2x256x256xbf16>
  %p = nd.softmax %s dim 2 : tensor<2x256x256xbf16>
  %o = nd.dot_general %p, %v batch [0] x [0] contract [2] x [1] : tensor<2x256x256xbf16>, tensor<2x256x64xbf16> -> tensor<2x256x64xbf16>
  return %o : tensor<2x256x64xbf16>
}
