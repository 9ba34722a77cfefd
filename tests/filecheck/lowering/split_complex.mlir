// RUN: gradir-opt %s -p split-complex | filecheck %s
// RUN: gradir-opt %s -p split-complex --check-semantics
// RUN: gradir-opt %s -p 'to-structured{target=cpu},to-buffers,to-loops' --check-semantics

// What has no complex numbers stays as it is.
// CHECK-LABEL: func.func @real(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    [[R:%.*]] = nd.add %x, %x : tensor<4xf32>
// CHECK-NEXT:    func.return [[R]] : tensor<4xf32>
func.func @real(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = nd.add %x, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}

// A public function takes and returns pairs along a last axis.
// CHECK-LABEL: func.func @conj(%z: tensor<2x3x2xf64>) -> tensor<2x3x2xf64> {
// CHECK-NEXT:    [[S0:%.*]] = nd.slice %z start [0, 0, 0] limit [2, 3, 1] : tensor<2x3x2xf64> -> tensor<2x3x1xf64>
// CHECK-NEXT:    %z_re = nd.reshape [[S0]] : tensor<2x3x1xf64> -> tensor<2x3xf64>
// CHECK-NEXT:    [[S1:%.*]] = nd.slice %z start [0, 0, 1] limit [2, 3, 2] : tensor<2x3x2xf64> -> tensor<2x3x1xf64>
// CHECK-NEXT:    %z_im = nd.reshape [[S1]] : tensor<2x3x1xf64> -> tensor<2x3xf64>
// CHECK-NEXT:    %r_im = nd.neg %z_im : tensor<2x3xf64>
// CHECK-NEXT:    [[C0:%.*]] = nd.reshape %z_re : tensor<2x3xf64> -> tensor<2x3x1xf64>
// CHECK-NEXT:    [[C1:%.*]] = nd.reshape %r_im : tensor<2x3xf64> -> tensor<2x3x1xf64>
// CHECK-NEXT:    [[P:%.*]] = nd.concatenate [[C0]], [[C1]] dim 2 : tensor<2x3x1xf64>, tensor<2x3x1xf64> -> tensor<2x3x2xf64>
// CHECK-NEXT:    func.return [[P]] : tensor<2x3x2xf64>
func.func @conj(%z: tensor<2x3xcomplex<f64>>) -> tensor<2x3xcomplex<f64>> {
  %r = nd.conj %z : tensor<2x3xcomplex<f64>>
  return %r : tensor<2x3xcomplex<f64>>
}

// A private one passes two tensors.
// CHECK-LABEL: func.func private @square(%z_re: tensor<4xf32>, %z_im: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:    [[A:%.*]] = nd.mul %z_re, %z_re
// CHECK-NEXT:    [[B:%.*]] = nd.mul %z_im, %z_im
// CHECK-NEXT:    %r_re = nd.sub [[A]], [[B]]
// CHECK-NEXT:    [[C:%.*]] = nd.mul %z_re, %z_im
// CHECK-NEXT:    [[D:%.*]] = nd.mul %z_im, %z_re
// CHECK-NEXT:    %r_im = nd.add [[C]], [[D]]
// CHECK-NEXT:    func.return %r_re, %r_im : tensor<4xf32>, tensor<4xf32>
func.func private @square(%z: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %r = nd.mul %z, %z : tensor<4xcomplex<f32>>
  return %r : tensor<4xcomplex<f32>>
}

// CHECK-LABEL: func.func @calls(
// CHECK:         %r_re, %r_im = func.call @square({{%.*}}, {{%.*}}) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
func.func @calls(%z: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %r = func.call @square(%z) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return %r : tensor<4xcomplex<f32>>
}

// A call of a public function passes pairs along a last axis.
// CHECK-LABEL: func.func @calls_public(
// CHECK:         {{%.*}} = func.call @calls({{%.*}}) : (tensor<4x2xf32>) -> tensor<4x2xf32>
func.func @calls_public(%z: tensor<4xcomplex<f32>>) -> tensor<4xf32> {
  %r = func.call @calls(%z) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  %a = nd.abs %r : tensor<4xcomplex<f32>>
  return %a : tensor<4xf32>
}

// Loops carry two values for one.
// CHECK-LABEL: func.func @for(
// CHECK:         %r_re, %r_im = scf.for %i = %lo to %hi step %one iter_args(%acc_re = {{%.*}}, %acc_im = {{%.*}}) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK:           scf.yield {{%.*}}, {{%.*}} : tensor<4xf32>, tensor<4xf32>
func.func @for(%z: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %lo = arith.constant 0 : index
  %hi = arith.constant 3 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %lo to %hi step %one iter_args(%acc = %z) -> (tensor<4xcomplex<f32>>) {
    %next = nd.mul %acc, %z : tensor<4xcomplex<f32>>
    scf.yield %next : tensor<4xcomplex<f32>>
  }
  return %r : tensor<4xcomplex<f32>>
}

// CHECK-LABEL: func.func @while(
// CHECK:         %r_re, %r_im, %k = scf.while (%a_re = %z_re, %a_im = %z_im, %n = %limit) : (tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
// CHECK:           scf.condition({{%.*}}) %a_re, %a_im, %size : tensor<f32>, tensor<f32>, tensor<f32>
// CHECK:         ^bb0([[RE:%.*]]: tensor<f32>, [[IM:%.*]]: tensor<f32>, [[N:%.*]]: tensor<f32>):
// CHECK:           %b_re = nd.add [[RE]], %two_re
// CHECK-NEXT:      %b_im = nd.add [[IM]], %two_im
// CHECK-NEXT:      scf.yield %b_re, %b_im, [[N]]
func.func @while(%z: tensor<complex<f32>>) -> (tensor<complex<f32>>, tensor<f32>) {
  %limit = nd.constant splat(100.0 : f32) : tensor<f32>
  %r, %k = scf.while (%a = %z, %n = %limit) : (tensor<complex<f32>>, tensor<f32>) -> (tensor<complex<f32>>, tensor<f32>) {
    %size = nd.abs %a : tensor<complex<f32>>
    %p = nd.compare lt, %size, %limit : tensor<f32>
    %c = tensor.extract %p[] : tensor<i1>
    scf.condition(%c) %a, %size : tensor<complex<f32>>, tensor<f32>
  } do {
  ^bb0(%a: tensor<complex<f32>>, %n: tensor<f32>):
    %two = nd.constant splat((2.0, 0.5) : complex<f32>) : tensor<complex<f32>>
    %b = nd.add %a, %two : tensor<complex<f32>>
    scf.yield %b, %n : tensor<complex<f32>>, tensor<f32>
  }
  return %r, %k : tensor<complex<f32>>, tensor<f32>
}

// CHECK-LABEL: func.func @if(
// CHECK:         %r_re, %r_im = scf.if {{%.*}} -> (tensor<2xf32>, tensor<2xf32>) {
// CHECK-NEXT:      scf.yield %z_re, %z_im
// CHECK:           scf.yield %z_re, %n_im
func.func @if(%p: tensor<i1>, %z: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  %c = tensor.extract %p[] : tensor<i1>
  %r = scf.if %c -> (tensor<2xcomplex<f32>>) {
    scf.yield %z : tensor<2xcomplex<f32>>
  } else {
    %n = nd.conj %z : tensor<2xcomplex<f32>>
    scf.yield %n : tensor<2xcomplex<f32>>
  }
  return %r : tensor<2xcomplex<f32>>
}

// CHECK-LABEL: func.func @switch(
// CHECK:         %r_re, %r_im = scf.index_switch {{%.*}} -> tensor<2xf32>, tensor<2xf32>
// CHECK:           scf.yield %z_re, %z_im
// CHECK:           scf.yield %n_re, %n_im
func.func @switch(%p: tensor<i32>, %z: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  %s = tensor.extract %p[] : tensor<i32>
  %c = arith.index_cast %s : i32 to index
  %r = scf.index_switch %c -> tensor<2xcomplex<f32>>
  case 0 {
    scf.yield %z : tensor<2xcomplex<f32>>
  }
  default {
    %n = nd.neg %z : tensor<2xcomplex<f32>>
    scf.yield %n : tensor<2xcomplex<f32>>
  }
  return %r : tensor<2xcomplex<f32>>
}

// Named sizes stay.
// CHECK-LABEL: func.func @named(%z: tensor<?x3x2xf32, ["b", "", ""]>) -> tensor<?x3x2xf32, ["b", "", ""]> {
// CHECK:         nd.exp %z_re : tensor<?x3xf32, ["b", ""]>
func.func @named(%z: tensor<?x3xcomplex<f32>, ["b", ""]>) -> tensor<?x3xcomplex<f32>, ["b", ""]> {
  %r = nd.exp %z : tensor<?x3xcomplex<f32>, ["b", ""]>
  return %r : tensor<?x3xcomplex<f32>, ["b", ""]>
}

// A product over a run-time size is a loop, over a static one log2(n) products of halves.
// CHECK-LABEL: func.func @product(
// CHECK-COUNT-3: nd.mul {{.*}} : tensor<1x?xf32, ["", "n"]>
// CHECK:         scf.for {{.*}} -> (tensor<f32>, tensor<f32>) {
// CHECK:           nd.index_at
// CHECK:           scf.yield
func.func @product(%z: tensor<?x2xcomplex<f32>, ["n", ""]>) -> tensor<complex<f32>> {
  %r = nd.reduce_prod %z dims [0, 1] : tensor<?x2xcomplex<f32>, ["n", ""]> -> tensor<complex<f32>>
  return %r : tensor<complex<f32>>
}

// CHECK-LABEL: func.func @prefixes(
// CHECK:         scf.for {{.*}} -> (tensor<f32>, tensor<f32>, tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>) {
func.func @prefixes(%z: tensor<?xcomplex<f32>, ["n"]>) -> tensor<?xcomplex<f32>, ["n"]> {
  %r = nd.cumprod %z dim 0 reverse : tensor<?xcomplex<f32>, ["n"]>
  return %r : tensor<?xcomplex<f32>, ["n"]>
}

// Regions get the parts of their arguments.
// CHECK-LABEL: func.func @fold(
// CHECK:         nd.reduce {{%.*}}, {{%.*}} init {{%.*}}, {{%.*}} dims [1] by (%a_re: tensor<f32>, %a_im: tensor<f32>, %b_re: tensor<f32>, %b_im: tensor<f32>) {
// CHECK:           nd.yield {{%.*}}, {{%.*}} : tensor<f32>, tensor<f32>
func.func @fold(%z: tensor<2x3xcomplex<f32>>, %i: tensor<complex<f32>>) -> tensor<2xcomplex<f32>> {
  %r = nd.reduce %z init %i dims [1] by (%a: tensor<complex<f32>>, %b: tensor<complex<f32>>) {
    %c = nd.mul %a, %b : tensor<complex<f32>>
    %d = nd.add %c, %b : tensor<complex<f32>>
    nd.yield %d : tensor<complex<f32>>
  } : tensor<2x3xcomplex<f32>>, tensor<complex<f32>> -> tensor<2xcomplex<f32>>
  return %r : tensor<2xcomplex<f32>>
}

// Sorting compares the two first parts, then the two second ones.
// CHECK-LABEL: func.func @sort(
// CHECK:         nd.sort {{%.*}}, {{%.*}} dim 0 by (%a_re: tensor<f32>, %b_re: tensor<f32>, %a_im: tensor<f32>, %b_im: tensor<f32>) {
// CHECK-NEXT:      [[R:%.*]] = nd.compare lt, %a_re, %b_re : tensor<f32>
func.func @sort(%z: tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>> {
  %r = nd.sort %z dim 0 by (%a: tensor<complex<f32>>, %b: tensor<complex<f32>>) {
    %x = nd.real %a : tensor<complex<f32>>
    %y = nd.real %b : tensor<complex<f32>>
    %c = nd.compare lt, %x, %y : tensor<f32>
    nd.yield %c : tensor<i1>
  } : tensor<3xcomplex<f32>>
  return %r : tensor<3xcomplex<f32>>
}

// A library function gets pairs, and is told so.
// CHECK-LABEL: func.func @printed(
// CHECK:         [[P:%.*]] = nd.concatenate {{%.*}}, {{%.*}} dim 1 : tensor<2x1xf32>, tensor<2x1xf32> -> tensor<2x2xf32>
// CHECK:         nd.custom_call @print([[P]]) {{.*}}complex_operands = array<i64: 0>{{.*}} : (tensor<2x2xf32>) -> ()
func.func @printed(%z: tensor<2xcomplex<f32>>) {
  nd.custom_call @print(%z) {config = {format = "{}"}, effects} : (tensor<2xcomplex<f32>>) -> ()
  return
}
