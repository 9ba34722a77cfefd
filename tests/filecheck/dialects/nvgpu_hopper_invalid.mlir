// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%t: !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>, %g: !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>, %i: index, %m: memref<64x32xbf16, #gpu.address_space<workgroup>>) {
  // expected-error@+1 {{nvgpu.tma.async.load: the box of the tensor map is memref<64x64xbf16}}
  nvgpu.tma.async.load %t[%i, %i], %g[%i] to %m : !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>, !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> memref<64x32xbf16, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @f(%t: !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>, %g: !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>, %i: index, %m: memref<64x64xbf16, #gpu.address_space<workgroup>>) {
  // expected-error@+1 {{nvgpu.tma.async.load: expected a coordinate of each dimension of memref<64x64xbf16}}
  nvgpu.tma.async.load %t[%i], %g[%i] to %m : !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>, !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2> -> memref<64x64xbf16, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @f(%t: !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, #gpu.address_space<workgroup>>, swizzle = swizzle_64b, l2promo = none, oob = zero, interleave = none>, %m: memref<64x64xbf16, #gpu.address_space<workgroup>>) {
  // expected-error@+1 {{nvgpu.warpgroup.generate.descriptor: expected a swizzle of 128 bytes without interleaving, found}}
  %d = nvgpu.warpgroup.generate.descriptor %m, %t : memref<64x64xbf16, #gpu.address_space<workgroup>>, !nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, #gpu.address_space<workgroup>>, swizzle = swizzle_64b, l2promo = none, oob = zero, interleave = none> -> !nvgpu.warpgroup.descriptor<tensor = memref<64x64xbf16, #gpu.address_space<workgroup>>>
  return
}

// -----

func.func @f(%t: !nvgpu.tensormap.descriptor<tensor = memref<64x32xbf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>, %m: memref<64x32xbf16, #gpu.address_space<workgroup>>) {
  // expected-error@+1 {{nvgpu.warpgroup.generate.descriptor: expected rows of a multiple of 128 bytes, found memref<64x32xbf16}}
  %d = nvgpu.warpgroup.generate.descriptor %m, %t : memref<64x32xbf16, #gpu.address_space<workgroup>>, !nvgpu.tensormap.descriptor<tensor = memref<64x32xbf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none> -> !nvgpu.warpgroup.descriptor<tensor = memref<64x32xbf16, #gpu.address_space<workgroup>>>
  return
}

// -----

func.func @f(%t: !nvgpu.tensormap.descriptor<tensor = memref<32x64xbf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>, %m: memref<64x128xbf16, #gpu.address_space<workgroup>>) {
  // expected-error@+1 {{has several boxes of the tensor map side by side, whose 32 rows are others}}
  %d = nvgpu.warpgroup.generate.descriptor %m, %t : memref<64x128xbf16, #gpu.address_space<workgroup>>, !nvgpu.tensormap.descriptor<tensor = memref<32x64xbf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none> -> !nvgpu.warpgroup.descriptor<tensor = memref<64x128xbf16, #gpu.address_space<workgroup>>>
  return
}

// -----

func.func @f(%a: !nvgpu.warpgroup.descriptor<tensor = memref<64x64xbf16, #gpu.address_space<workgroup>>>, %b: !nvgpu.warpgroup.descriptor<tensor = memref<32x128xbf16, #gpu.address_space<workgroup>>>, %c: !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>>) {
  // expected-error@+1 {{do not give vector<64x128xf32>}}
  %d = nvgpu.warpgroup.mma %a, %b, %c : !nvgpu.warpgroup.descriptor<tensor = memref<64x64xbf16, #gpu.address_space<workgroup>>>, !nvgpu.warpgroup.descriptor<tensor = memref<32x128xbf16, #gpu.address_space<workgroup>>>, !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>> -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>>
  return
}

// -----

func.func @f(%a: !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf32, #gpu.address_space<workgroup>>>, %b: !nvgpu.warpgroup.descriptor<tensor = memref<64x128xf32, #gpu.address_space<workgroup>>>, %c: !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>>) {
  // expected-error@+1 {{nvgpu.warpgroup.mma: expected factors of f16 or of bf16 and f32 sums, found}}
  %d = nvgpu.warpgroup.mma %a, %b, %c : !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf32, #gpu.address_space<workgroup>>>, !nvgpu.warpgroup.descriptor<tensor = memref<64x128xf32, #gpu.address_space<workgroup>>>, !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>> -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>>
  return
}

// -----

func.func @f(%a: !nvgpu.warpgroup.descriptor<tensor = memref<32x64xbf16, #gpu.address_space<workgroup>>>, %b: !nvgpu.warpgroup.descriptor<tensor = memref<64x128xbf16, #gpu.address_space<workgroup>>>, %c: !nvgpu.warpgroup.accumulator<fragmented = vector<32x128xf32>>) {
  // expected-error@+1 {{nvgpu.warpgroup.mma: expected m % 64 = 0, n % 8 = 0 up to 256, k % 16 = 0, found 32, 128, 64}}
  %d = nvgpu.warpgroup.mma %a, %b, %c : !nvgpu.warpgroup.descriptor<tensor = memref<32x64xbf16, #gpu.address_space<workgroup>>>, !nvgpu.warpgroup.descriptor<tensor = memref<64x128xbf16, #gpu.address_space<workgroup>>>, !nvgpu.warpgroup.accumulator<fragmented = vector<32x128xf32>> -> !nvgpu.warpgroup.accumulator<fragmented = vector<32x128xf32>>
  return
}

// -----

func.func @f(%c: !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>>, %m: memref<64x64xf32>) {
  // expected-error@+1 {{nvgpu.warpgroup.mma.store: expected memory like vector<64x128xf32>, found memref<64x64xf32>}}
  nvgpu.warpgroup.mma.store %c, %m : !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>> to memref<64x64xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{nvvm.setmaxregister: expected a multiple of 8 from 24 to 256, found 20}}
  nvvm.setmaxregister decrease 20
  return
}
