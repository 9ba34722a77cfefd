// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%m: memref<3xf32>, %i: index) {
  // expected-error@+1 {{memref.prefetch: the locality is 0 to 3, not 4}}
  memref.prefetch %m[%i], read, locality<4>, data : memref<3xf32>
  return
}
