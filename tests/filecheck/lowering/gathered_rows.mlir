// RUN: gradir-opt %s -p lower-kernels | filecheck %s

// Whole rows of a table beyond L2: the index once a row, each vector asks for the same columns of a row further on.
// CHECK-LABEL: func.func private @lookup
// CHECK:       scf.for %[[R:[^ ]*]] =
// CHECK:         %[[I:.*]] = memref.load %{{.*}}[%[[R]]] : memref<100xi32>
// CHECK:         %[[ROW:.*]] = arith.index_cast %[[I]]
// CHECK:         %[[SOON:.*]] = arith.minsi
// CHECK:         %[[J:.*]] = memref.load %{{.*}}[%[[SOON]]] : memref<100xi32>
// CHECK:         %[[NEXT:.*]] = arith.index_cast %[[J]]
// CHECK:         scf.for %[[C:[^ ]*]] =
// CHECK:           memref.prefetch %[[TABLE:.*]][%[[NEXT]], %{{.*}}], read
// CHECK-NOT:       arith.index_cast
// CHECK:           vector.load %[[TABLE]][%[[ROW]], %[[C]]]
func.func private @lookup(%ids: memref<100xi32>, %table: memref<50000x256xf32>, %out: memref<100x256xf32>) attributes {gradir.kernel = #kernel.elementwise<tile = [16]>} {
  linalg.generic {indexing_maps = [affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]} ins(%ids : memref<100xi32>) outs(%out : memref<100x256xf32>) {
  ^bb0(%i: i32, %o: f32):
    %row = arith.index_cast %i : i32 to index
    %c = linalg.index 1 : index
    %v = memref.load %table[%row, %c] : memref<50000x256xf32>
    linalg.yield %v : f32
  }
  return
}
