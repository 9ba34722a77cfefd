// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%m: memref<8x8xbf16, #gpu.address_space<workgroup>>, %i: index) {
  // expected-error@+1 {{nvgpu.ldmatrix: numTiles: expected 1, 2 or 4, found 3}}
  %r = nvgpu.ldmatrix %m[%i, %i] {numTiles = 3 : i32, transpose = false} : memref<8x8xbf16, #gpu.address_space<workgroup>> -> vector<3x2xbf16>
  return
}

// -----

func.func @f(%m: memref<8x8xbf16, #gpu.address_space<workgroup>>, %i: index) {
  // expected-error@+1 {{nvgpu.ldmatrix: expected one row of 32 bits for each matrix, found vector<4x4xbf16>}}
  %r = nvgpu.ldmatrix %m[%i, %i] {numTiles = 4 : i32, transpose = false} : memref<8x8xbf16, #gpu.address_space<workgroup>> -> vector<4x4xbf16>
  return
}

// -----

func.func @f(%m: memref<8x16xi8, #gpu.address_space<workgroup>>, %i: index) {
  // expected-error@+1 {{nvgpu.ldmatrix: transpose takes elements of 16 bits, found vector<2x4xi8>}}
  %r = nvgpu.ldmatrix %m[%i, %i] {numTiles = 2 : i32, transpose = true} : memref<8x16xi8, #gpu.address_space<workgroup>> -> vector<2x4xi8>
  return
}

// -----

func.func @f(%a: vector<4x2xbf16>, %b: vector<2x2xbf16>, %c: vector<2x2xf32>) {
  // expected-error@+1 {{nvgpu.mma.sync: mmaShape: expected one of}}
  %r = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 24]} : (vector<4x2xbf16>, vector<2x2xbf16>, vector<2x2xf32>) -> vector<2x2xf32>
  return
}

// -----

func.func @f(%a: vector<4x2xbf16>, %b: vector<2x2xbf16>, %c: vector<2x2xf32>) {
  // expected-error@+1 {{nvgpu.mma.sync: fragments of [16, 8, 16] have shapes}}
  %r = nvgpu.mma.sync(%b, %b, %c) {mmaShape = [16, 8, 16]} : (vector<2x2xbf16>, vector<2x2xbf16>, vector<2x2xf32>) -> vector<2x2xf32>
  return
}

// -----

func.func @f(%a: vector<4x2xbf16>, %b: vector<2x2xbf16>, %c: vector<2x2xf32>) {
  // expected-error@+1 {{nvgpu.mma.sync: the result is of type vector<2x2xf16>, the accumulator of vector<2x2xf32>}}
  %r = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 16]} : (vector<4x2xbf16>, vector<2x2xbf16>, vector<2x2xf32>) -> vector<2x2xf16>
  return
}

// -----

func.func @f(%s: memref<64xf32>, %m: memref<64xf32, #gpu.address_space<workgroup>>, %i: index) {
  // expected-error@+1 {{nvgpu.device_async_copy: expected 4, 8 or 16 bytes, found 12}}
  %t = nvgpu.device_async_copy %s[%i], %m[%i], 3 : memref<64xf32> to memref<64xf32, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @f(%s: memref<64xf32>, %m: memref<64xf32, #gpu.address_space<workgroup>>, %i: index) {
  // expected-error@+1 {{nvgpu.device_async_copy: bypassL1 takes copies of 16 bytes, found 8}}
  %t = nvgpu.device_async_copy %s[%i], %m[%i], 2 {bypassL1} : memref<64xf32> to memref<64xf32, #gpu.address_space<workgroup>>
  return
}
