// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%m: memref<2x3xf32>, %i: index) {
  // expected-error@+1 {{memref.prefetch: 1 indices for memref<2x3xf32>}}
  memref.prefetch %m[%i], read, locality<3>, data : memref<2x3xf32>
  return
}
