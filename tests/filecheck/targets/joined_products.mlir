// Products of 16-bit neighbours: one instruction multiplies two of them and adds the products.
// RUN: gradir-translate %s --to asm --target cpu --cpu znver4 | filecheck %s --check-prefixes=SUMS,BF16
// RUN: gradir-translate %s --to asm --target cpu --cpu icelake-server | filecheck %s --check-prefixes=SUMS,FMA
// RUN: gradir-translate %s --to asm --target cpu --cpu skx | filecheck %s --check-prefixes=PAIRS
// RUN: gradir-translate %s --to asm --target cpu --cpu x86-64-v3 | filecheck %s --check-prefixes=PAIRS
// RUN: gradir-translate %s --to asm --target cpu --cpu x86-64-v2 | filecheck %s --check-prefixes=OLD

// FMA: vfmadd
// BF16: vdpbf16ps
// SUMS: vpdpwssd
// PAIRS: vpmaddwd
// OLD: pmaddwd
func.func @bf16(%a: tensor<24x7xbf16>, %b: tensor<7x70xbf16>) -> tensor<24x70xf32> {
  %0 = nd.dot_general %a, %b contract [1] x [0] : tensor<24x7xbf16>, tensor<7x70xbf16> -> tensor<24x70xf32>
  return %0 : tensor<24x70xf32>
}
func.func @i8(%a: tensor<24x7xi8>, %b: tensor<7x70xi8>) -> tensor<24x70xi32> {
  %0 = nd.dot_general %a, %b contract [1] x [0] : tensor<24x7xi8>, tensor<7x70xi8> -> tensor<24x70xi32>
  return %0 : tensor<24x70xi32>
}
