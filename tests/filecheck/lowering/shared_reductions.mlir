// RUN: gradir-opt %s -p lower-kernels --split-input-file | filecheck %s

// One row alone: threads take pieces of whole blocks, what they come to is joined in order, the rest follows.
// CHECK-LABEL: func.func private @total
// CHECK:       %[[PARTIAL:.*]] = memref.alloca() {{.*}} : memref<4xf64>
// CHECK:       scf.parallel (%[[P:.*]]) =
// CHECK:         scf.for {{.*}} -> (f64)
// CHECK:         memref.store {{.*}}, %[[PARTIAL]][%[[P]]]
// CHECK:       scf.for %[[Q:[^ ]*]] = {{.*}} -> (f64)
// CHECK:         memref.load %[[PARTIAL]][%[[Q]]]
// CHECK:       vector.load {{.*}} vector<8xf32>
// CHECK:       arith.truncf
func.func private @total(%x: memref<8200xf32>, %out: memref<f32>) attributes {gradir.kernel = #kernel.rows<tile = [4, 8], parallel = [0]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%out : memref<f32>)
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%x : memref<8200xf32>) outs(%out : memref<f32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  }
  return
}

// -----

// Threads share rows: a row of accumulators for each task, joined in order.
// CHECK-LABEL: func.func private @columns
// CHECK:       %[[SUMS:.*]] = memref.alloc{{.*}} : memref<4x600xf64>
// CHECK:       scf.parallel (%[[T:.*]]) =
// CHECK:         vector.store {{.*}}, %[[SUMS]][%[[T]],
// CHECK:       scf.reduce
// CHECK:       scf.for %[[J:[^ ]*]] =
// CHECK:         scf.for %[[U:[^ ]*]] = {{.*}} -> (vector<
// CHECK:           vector.load %[[SUMS]][%[[U]], %[[J]]]
func.func private @columns(%x: memref<999x600xf32>, %out: memref<600xf32>) attributes {gradir.kernel = #kernel.rows<tile = [4, 8], parallel = [0]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%out : memref<600xf32>)
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]} ins(%x : memref<999x600xf32>) outs(%out : memref<600xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  }
  return
}
