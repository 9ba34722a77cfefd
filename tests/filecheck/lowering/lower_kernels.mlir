// RUN: gradir-opt %s -p lower-kernels --split-input-file | filecheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>

// One register tile: the column of x times the packed row of w, bias and relu before anything is stored.
// CHECK-LABEL: func.func private @dense
// CHECK-SAME:  (%[[X:.*]]: memref<8x24xf32>, %[[W:.*]]: memref<24x32xf32>, %[[B:.*]]: memref<32xf32>, %[[OUT:.*]]: memref<8x32xf32>)
// CHECK:       %[[PANEL:.*]] = memref.alloca() {{.*}} : memref<24x16xf32>
// CHECK:       %[[NONE:.*]] = arith.constant dense<0.000000e+00> : vector<4x16xf32>
// CHECK:         vector.load %[[W]]
// CHECK:         vector.store {{.*}}, %[[PANEL]]
// CHECK:       scf.for %[[J:.*]] =
// CHECK:         %[[PLACE:.*]] = arith.muli
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           %[[ACC:.*]] = scf.for %[[K:.*]] = {{.*}} iter_args(%[[SUM:.*]] = %[[NONE]]) -> (vector<4x16xf32>)
// CHECK:             %[[COL:.*]] = vector.transfer_read %[[X]][%[[I]], %[[K]]]
// CHECK-SAME:          permutation_map = affine_map<(d0, d1) -> (d0)>
// CHECK:             %[[AT:.*]] = arith.addi %[[K]], %[[PLACE]] : index
// CHECK:             %[[ROW:.*]] = vector.load %[[PANEL]][%[[AT]], {{.*}}] : memref<24x16xf32>, vector<16xf32>
// CHECK:             %[[NEXT:.*]] = vector.outerproduct %[[COL]], %[[ROW]], %[[SUM]]
// CHECK:             scf.yield %[[NEXT]]
// CHECK:           %[[BIAS:.*]] = vector.load %[[B]][%[[J]]]
// CHECK:           arith.addf %[[ACC]]
// CHECK:           arith.maximumf
// CHECK:           vector.transfer_write {{.*}}, %[[OUT]][%[[I]], %[[J]]]
// CHECK-NOT:   linalg
func.func private @dense(%x: memref<8x24xf32>, %w: memref<24x32xf32>, %b: memref<32xf32>, %out: memref<8x32xf32>) attributes {gradir.kernel = #kernel.contraction<tile = [4, 16], pack = [1]>} {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<8x32xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<8x32xf32>)
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<8x24xf32>, memref<24x32xf32>) outs(%t : memref<8x32xf32>) {
  ^bb0(%a: f32, %c: f32, %acc: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#id, #n, #id], iterator_types = ["parallel", "parallel"]} ins(%t, %b : memref<8x32xf32>, memref<32xf32>) outs(%out : memref<8x32xf32>) {
  ^bb0(%v: f32, %bias: f32, %o: f32):
    %s = arith.addf %v, %bias : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  }
  memref.dealloc %t : memref<8x32xf32>
  return
}

// -----

// Neighbouring dimensions become one loop over whole vectors; what is left goes in powers of two.
// CHECK-LABEL: func.func private @negate
// CHECK:       %[[FLAT:.*]] = memref.collapse_shape %x {{.*}} : memref<5x7xf32> into memref<35xf32>
// CHECK:       scf.for
// CHECK:         vector.load %[[FLAT]][{{.*}}] : memref<35xf32>, vector<16xf32>
// CHECK:       vector.load %[[FLAT]][{{.*}}] : memref<35xf32>, vector<2xf32>
// CHECK:       memref.load %[[FLAT]]
func.func private @negate(%x: memref<5x7xf32>, %out: memref<5x7xf32>) attributes {gradir.kernel = #kernel.elementwise<tile = [16]>} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<5x7xf32>) outs(%out : memref<5x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  return
}

// -----

// A long row: four registers of partial sums in a block, blocks joined in f64.
// CHECK-LABEL: func.func private @row_sums
// CHECK:       scf.for
// CHECK:         scf.for {{.*}} iter_args({{.*}}) -> (f64)
// CHECK:           scf.for {{.*}} iter_args({{.*}}) -> (vector<32xf32>)
// CHECK:             vector.load {{.*}} : memref<3x4096xf32>, vector<32xf32>
// CHECK:           vector.reduction <add>, {{.*}} fastmath<reassoc> : vector<32xf32> into f32
// CHECK:           arith.extf
// CHECK:           arith.addf {{.*}} : f64
// CHECK:         arith.truncf
func.func private @row_sums(%x: memref<3x4096xf32>, %out: memref<3xf32>) attributes {gradir.kernel = #kernel.rows<tile = [4, 8]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%out : memref<3xf32>)
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<3x4096xf32>) outs(%out : memref<3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  }
  return
}

// -----

// An op outside of kernels becomes loops where it stands.
// CHECK-LABEL: func.func @entry
// CHECK:       vector.store {{.*}} : memref<1x3xf32>, vector<2xf32>
// CHECK:       memref.store %one
// CHECK-NOT:   linalg
func.func @entry(%out: memref<1x3xf32>) {
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%out : memref<1x3xf32>)
  return
}

// -----

// An operand of the epilogue that is beyond L2 is asked for before the sum, which takes long enough: four rows of one line each, to read and
// to write.
// CHECK-LABEL: func.func private @asks_for_operands
// CHECK:         scf.for
// CHECK:           memref.prefetch %r{{.*}}, read, locality<3>, data : memref<4096x64xf32>
// CHECK:           memref.prefetch %out{{.*}}, write, locality<3>, data : memref<4096x64xf32>
// CHECK-COUNT-6:   memref.prefetch
// CHECK:           scf.for
// CHECK:             vector.outerproduct
func.func private @asks_for_operands(%x: memref<4096x256xf32>, %w: memref<256x64xf32>, %r: memref<4096x64xf32>, %out: memref<4096x64xf32>) attributes {gradir.kernel = #kernel.contraction<tile = [4, 16], pack = [1]>} {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<4096x64xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<4096x64xf32>)
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<4096x256xf32>, memref<256x64xf32>) outs(%t : memref<4096x64xf32>) {
  ^bb0(%a: f32, %c: f32, %acc: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%t, %r : memref<4096x64xf32>, memref<4096x64xf32>) outs(%out : memref<4096x64xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  }
  memref.dealloc %t : memref<4096x64xf32>
  func.return
}

// -----

// Lines of 7 positions: the rows of a tile are positions across the ends of lines, each with a view of the image that the window moves over.
// CHECK-LABEL: func.func private @short_lines
// CHECK:           %[[VIEW:.*]] = memref.subview %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, 0] [1, 3, 3, 32] [1, 1, 1, 1]
// CHECK-COUNT-5:   memref.subview
// CHECK:           scf.for %[[I:[0-9]+]] =
// CHECK:             scf.for %[[J:[0-9]+]] =
// CHECK:               scf.for %[[C:[0-9]+]] =
// CHECK:                 memref.load %[[VIEW]][%{{.*}}, %[[I]], %[[J]], %[[C]]]
// CHECK-COUNT-5:         memref.load
// CHECK:                 vector.from_elements {{.*}} : vector<6xf32>
// CHECK:                 vector.outerproduct
func.func private @short_lines(%x: memref<2x9x9x32xf32>, %w: memref<3x3x32x32xf32>, %out: memref<2x7x7x32xf32>) attributes {gradir.kernel = #kernel.contraction<tile = [6, 16], pack = [1]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%out : memref<2x7x7x32xf32>)
  linalg.generic {indexing_maps = [affine_map<(n, h, w, o, i, j, c) -> (n, h + i, w + j, c)>, affine_map<(n, h, w, o, i, j, c) -> (i, j, c, o)>, affine_map<(n, h, w, o, i, j, c) -> (n, h, w, o)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : memref<2x9x9x32xf32>, memref<3x3x32x32xf32>) outs(%out : memref<2x7x7x32xf32>) {
  ^bb0(%a: f32, %c: f32, %acc: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  }
  func.return
}

// -----

// Results side by side along positions, an image side by side along channels: the tiles of a line wait in scratch memory and are turned.
// CHECK-LABEL: func.func private @turned_result
// CHECK-DAG:     %[[LINE:.*]] = memref.alloca() {{.*}} : memref<8x16xf32>
// CHECK:         vector.outerproduct
// CHECK:         vector.transfer_write {{.*}}, %[[LINE]]
// CHECK-COUNT-2: vector.transpose {{.*}} : vector<8x8xf32> to vector<8x8xf32>
func.func private @turned_result(%x: memref<2x10x10x32xf32>, %w: memref<3x3x32x16xf32>, %out: memref<2x16x8x8xf32>) attributes {gradir.kernel = #kernel.contraction<tile = [4, 16], pack = [1]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%out : memref<2x16x8x8xf32>)
  linalg.generic {indexing_maps = [affine_map<(n, o, h, w, i, j, c) -> (n, h + i, w + j, c)>, affine_map<(n, o, h, w, i, j, c) -> (i, j, c, o)>, affine_map<(n, o, h, w, i, j, c) -> (n, o, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : memref<2x10x10x32xf32>, memref<3x3x32x16xf32>) outs(%out : memref<2x16x8x8xf32>) {
  ^bb0(%a: f32, %c: f32, %acc: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  }
  func.return
}
