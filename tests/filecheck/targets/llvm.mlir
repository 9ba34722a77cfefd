// RUN: gradir-translate --to=llvm-ir --target=cpu --cpu=znver3 --threads=2 %s | filecheck %s

// A kernel is internal, takes the context, and its operands are noalias where the operand attributes say so.
// CHECK-LABEL: define internal i32 @tile(ptr %ctx, ptr noalias readonly %a0, ptr noalias readonly %a1, ptr noalias %a2)
// The column comes as scalars, each row of the accumulator is one fma.
// CHECK:         phi <8 x float> [splat (float 0x0000000000000000), %{{.*}}], [%[[N0:.*]], %{{.*}}]
// CHECK:         load float, ptr
// CHECK:         load float, ptr
// CHECK:         load <8 x float>, ptr %{{.*}}, align 4
// CHECK:         call <8 x float> @llvm.fma.v8f32
// CHECK:         call <8 x float> @llvm.fma.v8f32
func.func private @tile(%a: memref<2x16xf32> {gradir.access = "read"}, %b: memref<16x8xf32> {gradir.access = "read"},
                        %o: memref<2x8xf32> {gradir.access = "write"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %pad = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : vector<2x8xf32>
  %r = scf.for %k = %c0 to %c16 step %c1 iter_args(%s = %none) -> (vector<2x8xf32>) {
    %col = vector.transfer_read %a[%c0, %k], %pad {in_bounds = [true], permutation_map = affine_map<(m, k) -> (m)>} : memref<2x16xf32>, vector<2xf32>
    %row = vector.load %b[%k, %c0] : memref<16x8xf32>, vector<8xf32>
    %n = vector.outerproduct %col, %row, %s {kind = #vector.kind<add>} : vector<2xf32>, vector<8xf32>
    scf.yield %n : vector<2x8xf32>
  }
  vector.transfer_write %r, %o[%c0, %c0] {in_bounds = [true, true], permutation_map = affine_map<(m, n) -> (m, n)>} : vector<2x8xf32>, memref<2x8xf32>
  return
}

// The entry is external; what the runtime calls reads 64-bit slots.
// CHECK-LABEL: define i32 @f(ptr %ctx, ptr %a0, ptr %a1, ptr %a2)
// CHECK:         call i32 @tile(ptr %ctx, ptr %a0, ptr %a1, ptr %a2)
// CHECK-LABEL: define i32 @f.packed(ptr %ctx, ptr %args)
// CHECK:         load ptr, ptr %args, align 8
func.func @f(%a: memref<2x16xf32>, %b: memref<16x8xf32>, %o: memref<2x8xf32>) {
  call @tile(%a, %b, %o) : (memref<2x16xf32>, memref<16x8xf32>, memref<2x8xf32>) -> ()
  return
}
