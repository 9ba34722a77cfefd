// RUN: gradir-opt %s | gradir-opt | filecheck %s
// RUN: gradir-opt %s --print-op-generic | gradir-opt | filecheck %s

// CHECK-LABEL: func.func @functions
func.func @functions(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  // CHECK: nd.lgamma %x : tensor<?xf32, ["n"]>
  %0 = nd.lgamma %x : tensor<?xf32, ["n"]>
  // CHECK: nd.digamma %x : tensor<?xf32, ["n"]>
  %1 = nd.digamma %x : tensor<?xf32, ["n"]>
  // CHECK: nd.trigamma %x : tensor<?xf32, ["n"]>
  %2 = nd.trigamma %x : tensor<?xf32, ["n"]>
  // CHECK: nd.bessel_i0e %x : tensor<?xf32, ["n"]>
  %3 = nd.bessel_i0e %x : tensor<?xf32, ["n"]>
  // CHECK: nd.bessel_i1e %x : tensor<?xf32, ["n"]>
  %4 = nd.bessel_i1e %x : tensor<?xf32, ["n"]>
  // CHECK: nd.zeta %x, %4 : tensor<?xf32, ["n"]>
  %5 = nd.zeta %x, %4 : tensor<?xf32, ["n"]>
  // CHECK: nd.polygamma %x, %5 : tensor<?xf32, ["n"]>
  %6 = nd.polygamma %x, %5 : tensor<?xf32, ["n"]>
  // CHECK: nd.fma %x, %5, %6 : tensor<?xf32, ["n"]>
  %7 = nd.fma %x, %5, %6 : tensor<?xf32, ["n"]>
  return %7 : tensor<?xf32, ["n"]>
}
