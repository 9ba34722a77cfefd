// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// memref.copy copies equal element types and shapes.

func.func @f(%x: memref<4xf32>, %y: memref<4xf64>) {
  // expected-error@+1 {{memref.copy: element types differ: f32 and f64}}
  memref.copy %x, %y : memref<4xf32> to memref<4xf64>
  return
}

// -----

func.func @f(%x: memref<4xf32>, %y: memref<5xf32>) {
  // expected-error@+1 {{memref.copy: shapes differ: memref<4xf32> and memref<5xf32>}}
  memref.copy %x, %y : memref<4xf32> to memref<5xf32>
  return
}

// -----

func.func @f(%x: memref<4xf32>, %y: memref<4x1xf32>) {
  // expected-error@+1 {{memref.copy: shapes differ: memref<4xf32> and memref<4x1xf32>}}
  memref.copy %x, %y : memref<4xf32> to memref<4x1xf32>
  return
}
