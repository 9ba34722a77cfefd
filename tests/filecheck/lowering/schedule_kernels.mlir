// RUN: gradir-opt %s -p schedule-kernels --split-input-file | filecheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// The tile fills the registers of the target, columns that lie 2048 bytes apart are packed, the columns are split evenly, two threads share the panels.
// CHECK-LABEL: func.func private @matmul
// CHECK-SAME:  gradir.kernel = #kernel.contraction<tile = [6, 16], block = [96, 256, 0], pack = [1], parallel = [1]>, gradir.reason = "6 x 16 accumulators in 12 of 16 registers; operand 1 copied into panels; blocks of 96 rows by 256 columns; threads share dimension 1"}
builtin.module attributes {gradir.target = #target.cpu<"znver3", threads = 2>} {
  func.func private @matmul(%x: memref<128x256xf32>, %w: memref<256x512xf32>, %out: memref<128x512xf32>) attributes {gradir.kernel = #kernel.contraction<>} {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%out : memref<128x512xf32>)
    linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : memref<128x256xf32>, memref<256x512xf32>) outs(%out : memref<128x512xf32>) {
    ^bb0(%a: f32, %b: f32, %acc: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %acc, %p : f32
      linalg.yield %s : f32
    }
    return
  }
}

// -----

// A schedule that has fields stays as it is, without a reason of ours; a template has none.
// CHECK-LABEL: func.func private @by_hand
// CHECK-SAME:  gradir.kernel = #kernel.elementwise<tile = [4]>}
// CHECK-LABEL: func.func private @template
// CHECK-SAME:  gradir.kernel = #kernel.template<>
func.func private @by_hand(%x: memref<8xf32>, %out: memref<8xf32>) attributes {gradir.kernel = #kernel.elementwise<tile = [4]>} {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : memref<8xf32>) outs(%out : memref<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  return
}
func.func private @template(%x: memref<8xf32>) attributes {gradir.kernel = #kernel.template<>} {
  return
}
