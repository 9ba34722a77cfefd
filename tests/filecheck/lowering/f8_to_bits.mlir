// RUN: gradir-opt %s -p f8-to-bits | filecheck %s
// RUN: gradir-opt %s -p f8-to-bits --check-semantics
// RUN: gradir-opt %s -p 'to-structured{target=cpu},to-buffers,to-loops' --check-semantics

// What has no 8-bit floats stays as it is.
// CHECK-LABEL: func.func @wide(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    [[R:%.*]] = nd.add %x, %x : tensor<4xf32>
// CHECK-NEXT:    func.return [[R]] : tensor<4xf32>
func.func @wide(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = nd.add %x, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}

// Elements are moved as bits.
// CHECK-LABEL: func.func @moved(%p: tensor<2xi1>, %x: tensor<2xi8>, %y: tensor<2xi8>) -> tensor<2xi8> {
// CHECK-NEXT:    %z = nd.reverse %y dims [0] : tensor<2xi8>
// CHECK-NEXT:    %r = nd.select %p, %x, %z : tensor<2xi8>
// CHECK-NEXT:    func.return %r : tensor<2xi8>
func.func @moved(%p: tensor<2xi1>, %x: tensor<2xf8E4M3FN>, %y: tensor<2xf8E4M3FN>) -> tensor<2xf8E4M3FN> {
  %z = nd.reverse %y dims [0] : tensor<2xf8E4M3FN>
  %r = nd.select %p, %x, %z : tensor<2xf8E4M3FN>
  return %r : tensor<2xf8E4M3FN>
}

// 1.5 is sign 0, exponent 7 (bias 7), mantissa 100.
// CHECK-LABEL: func.func @constant() -> tensor<2xi8> {
// CHECK-NEXT:    %c = nd.constant splat(60 : i8) : tensor<2xi8>
func.func @constant() -> tensor<2xf8E4M3FN> {
  %c = nd.constant splat(1.5 : f8E4M3FN) : tensor<2xf8E4M3FN>
  return %c : tensor<2xf8E4M3FN>
}

// The way up: magnitude under f32's exponent, times 2 ** (127 - 15), inf and NaN put in place, sign.
// CHECK-LABEL: func.func @up(%x: tensor<4xi8>) -> tensor<4xf32> {
// CHECK:         [[W:%.*]] = nd.convert %x : tensor<4xi8> -> tensor<4xi32>
// CHECK:         [[M:%.*]] = nd.and [[W]], {{%.*}} : tensor<4xi32>
// CHECK:         [[S:%.*]] = nd.shl [[M]], {{%.*}} : tensor<4xi32>
// CHECK:         [[F:%.*]] = nd.bitcast_convert [[S]] : tensor<4xi32> -> tensor<4xf32>
// CHECK:         [[C:%.*]] = nd.constant splat(5.19229686e+33 : f32) : tensor<4xf32>
// CHECK:         nd.mul [[F]], [[C]] : tensor<4xf32>
func.func @up(%x: tensor<4xf8E5M2>) -> tensor<4xf32> {
  %r = nd.convert %x : tensor<4xf8E5M2> -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// Numbers are computed in f32; what follows reads the rounded bits.
// CHECK-LABEL: func.func @computed(
// CHECK:         [[A:%.*]] = nd.add {{%.*}}, {{%.*}} : tensor<4xf32>
// CHECK:         %r = nd.convert {{%.*}} : tensor<4xi32> -> tensor<4xi8>
// CHECK:         nd.exp {{%.*}} : tensor<4xf32>
// CHECK:         %e = nd.convert {{%.*}} : tensor<4xi32> -> tensor<4xi8>
// CHECK:         func.return %r, %e : tensor<4xi8>, tensor<4xi8>
func.func @computed(%x: tensor<4xf8E5M2>) -> (tensor<4xf8E5M2>, tensor<4xf8E5M2>) {
  %r = nd.add %x, %x : tensor<4xf8E5M2>
  %e = nd.exp %r : tensor<4xf8E5M2>
  return %r, %e : tensor<4xf8E5M2>, tensor<4xf8E5M2>
}

// CHECK-LABEL: func.func @product(
// CHECK:         nd.dot_general {{%.*}}, {{%.*}} contract [1] x [0] : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
func.func @product(%x: tensor<4x8xf8E4M3FN>, %y: tensor<8x4xf8E4M3FN>) -> tensor<4x4xf32> {
  %r = nd.dot_general %x, %y contract [1] x [0] : tensor<4x8xf8E4M3FN>, tensor<8x4xf8E4M3FN> -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// Loops and calls carry bits.
// CHECK-LABEL: func.func @loop(
// CHECK:         %r = scf.for %i = %lo to %hi step %one iter_args(%acc = %x) -> (tensor<4xi8>) {
// CHECK:           scf.yield {{%.*}} : tensor<4xi8>
// CHECK:         func.call @computed(%r) : (tensor<4xi8>) -> (tensor<4xi8>, tensor<4xi8>)
func.func @loop(%x: tensor<4xf8E5M2>) -> tensor<4xf8E5M2> {
  %lo = arith.constant 0 : index
  %hi = arith.constant 3 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %lo to %hi step %one iter_args(%acc = %x) -> (tensor<4xf8E5M2>) {
    %next = nd.mul %acc, %x : tensor<4xf8E5M2>
    scf.yield %next : tensor<4xf8E5M2>
  }
  %a, %b = func.call @computed(%r) : (tensor<4xf8E5M2>) -> (tensor<4xf8E5M2>, tensor<4xf8E5M2>)
  return %a : tensor<4xf8E5M2>
}
