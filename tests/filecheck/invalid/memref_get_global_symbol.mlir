// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// memref.get_global names a global of this module, of the result's type.

func.func @f() {
  // expected-error@+1 {{names @missing, which is not in this module; expected a memref.global}}
  %0 = memref.get_global @missing : memref<4xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{names @f, which is a func.func; expected a memref.global}}
  %0 = memref.get_global @f : memref<4xf32>
  return
}

// -----

// expected-note@+1 {{defined here}}
memref.global "private" constant @g : memref<2xf32> = dense<[1.0, 2.0]>
func.func @f() {
  // expected-error@+1 {{types differ: @g has type memref<2xf32>, the result has memref<4xf32>}}
  %0 = memref.get_global @g : memref<4xf32>
  return
}
