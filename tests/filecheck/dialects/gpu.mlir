// RUN: gradir-opt %s | gradir-opt - | filecheck %s

// CHECK:      gpu.module @kernels {
// CHECK-NEXT:   gpu.func @k(%a : memref<4xf32> {gradir.access = "read"}) workgroup(%s : memref<8xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
// CHECK-NEXT:     %t = gpu.thread_id x
// CHECK-NEXT:     %b = gpu.block_id y
// CHECK:          %q, %p = gpu.shuffle xor %v, %o, %w : f32
// CHECK-NEXT:     gpu.barrier
// CHECK-NEXT:     gpu.return
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%a : memref<4xf32> {gradir.access = "read"}) workgroup(%s : memref<8xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
      %t = gpu.thread_id x
      %b = gpu.block_id y
      %o = arith.constant 16 : i32
      %w = arith.constant 32 : i32
      %v = memref.load %a[%t] : memref<4xf32>
      %q, %p = gpu.shuffle xor %v, %o, %w : f32
      gpu.barrier
      gpu.return
    }
  }
  // CHECK: gpu.alloc () : memref<4xf32>
  // CHECK: gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) args({{.*}} : memref<4xf32>)
  func.func @h(%n: index) {
    %m = gpu.alloc () : memref<4xf32>
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%m : memref<4xf32>)
    gpu.dealloc %m : memref<4xf32>
    return
  }
}
