// RUN: gradir-translate --to=llvm-ir --target=cpu --cpu=znver3 --threads=2 %s | filecheck %s

// The body is a function over a range; the loop calls the context's parallel-for (offset 8) with a closure.
// CHECK:       define internal void @k.parallel0.body(ptr %ctx, i64 %lo, i64 %hi, ptr %status, ptr noalias %x0)
// CHECK:       define internal void @k.parallel0(ptr %ctx, ptr %closure, i64 %lo, i64 %hi)
// CHECK-LABEL: define internal i32 @k(ptr %ctx, ptr noalias %a0)
// CHECK:         [[AT:%.*]] = getelementptr inbounds i8, ptr %ctx, i64 8
// CHECK:         [[CALL:%.*]] = load ptr, ptr [[AT]], align 8
// CHECK:         call void [[CALL]](ptr %ctx, ptr @k.parallel0, ptr %{{.*}}, i64 16, i64 1)
func.func private @k(%o: memref<64xf32> {gradir.access = "write"}) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %v = arith.constant dense<1.0> : vector<4xf32>
  "scf.parallel"(%c0, %c64, %c4) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    vector.store %v, %o[%i] : memref<64xf32>, vector<4xf32>
    scf.reduce
  }) : (index, index, index) -> ()
  return
}

// An assertion fills the error slot (offset 32) and ends with status 1.
// CHECK-LABEL: define i32 @f(ptr %ctx, ptr %a0, i1 %a1)
// CHECK:         getelementptr inbounds i8, ptr %ctx, i64 32
// CHECK:         store i64 1, ptr
// CHECK:         ret i32 1
func.func @f(%o: memref<64xf32>, %ok: i1) {
  cf.assert %ok, "not ok"
  call @k(%o) : (memref<64xf32>) -> ()
  return
}
