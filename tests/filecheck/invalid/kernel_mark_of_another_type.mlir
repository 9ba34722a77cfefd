// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// gradir.kernel is an attribute of the kernel dialect.

// expected-error@+1 {{must have a #kernel attribute as gradir.kernel, found "loops"}}
func.func private @k(%x: memref<4xf32>) attributes {gradir.kernel = "loops"} {
  return
}
