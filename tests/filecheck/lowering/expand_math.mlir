// RUN: gradir-opt %s -p 'set-target{target=cpu cpu=znver4},expand-math' --split-input-file | filecheck %s

// exp: x is kept to where e^x is finite and not 0, the sum with 1.5 * 2^23 rounds to an integer, 2^n is applied in two halves.
// CHECK-LABEL: func.func @exp
// CHECK-NOT:     math.exp
// CHECK:         arith.cmpf ogt, %x
// CHECK:         arith.cmpf olt
// CHECK:         [[X:%.*]] = arith.select
// CHECK:         [[S:%.*]] = math.fma [[X]], {{%.*}}, {{%.*}} : vector<8xf32>
// CHECK:         arith.subf [[S]], {{%.*}} : vector<8xf32>
// CHECK-COUNT-7: math.fma
// CHECK-COUNT-2: arith.bitcast {{%.*}} : vector<8xi32> to vector<8xf32>
func.func @exp(%x: vector<8xf32>) -> vector<8xf32> {
  %r = math.exp %x : vector<8xf32>
  return %r : vector<8xf32>
}

// -----

// e^x of x <= 0 needs one end of the range only, and one power of 2.
// CHECK-LABEL: func.func @exp_of_nonpositive
// CHECK-NOT:     arith.cmpf ogt
// CHECK:         arith.cmpf olt, %x
// CHECK:         arith.shli
// CHECK-NOT:     arith.shrsi
// CHECK:         arith.mulf
// CHECK:         arith.mulf
func.func @exp_of_nonpositive(%x: vector<8xf32>) -> vector<8xf32> {
  %r = math.exp %x {gradir.nonpositive} : vector<8xf32>
  return %r : vector<8xf32>
}

// -----

// What the target has stays; f16 is computed in f32.
// CHECK-LABEL: func.func @native
// CHECK:         math.sqrt %x : f32
// CHECK:         arith.extf %h : f16 to f32
// CHECK:         arith.truncf {{%.*}} : f32 to f16
func.func @native(%x: f32, %h: f16) -> (f32, f16) {
  %r = math.sqrt %x : f32
  %e = math.exp %h : f16
  return %r, %e : f32, f16
}

// -----

// Huge arguments of sin: a branch that most inputs skip.
// CHECK-LABEL: func.func @sin
// CHECK:         vector.reduction <or>
// CHECK:         scf.if
// CHECK:         arith.mului_extended
func.func @sin(%x: vector<4xf64>) -> vector<4xf64> {
  %r = math.sin %x : vector<4xf64>
  return %r : vector<4xf64>
}
