// RUN: gradir-opt %s -p symbol-dce | filecheck %s

// CHECK-NOT:   @cycle
// CHECK-NOT:   @unused
// CHECK:       memref.global "private" constant @table
// CHECK-NOT:   @lost
// CHECK:       func.func private @leaf
// CHECK:       func.func private @middle
// CHECK:       func.func @public
func.func private @cycle_a() {
  call @cycle_b() : () -> ()
  return
}
func.func private @cycle_b() {
  call @cycle_a() : () -> ()
  return
}
func.func private @unused() {
  return
}
memref.global "private" constant @table : memref<2xf32> = dense<[1.0, 2.0]>
memref.global "private" constant @lost : memref<2xf32> = dense<[1.0, 2.0]>
func.func private @leaf() -> memref<2xf32> {
  %0 = memref.get_global @table : memref<2xf32>
  return %0 : memref<2xf32>
}
func.func private @middle() -> memref<2xf32> {
  %0 = call @leaf() : () -> memref<2xf32>
  return %0 : memref<2xf32>
}
func.func @public() -> memref<2xf32> {
  %0 = call @middle() : () -> memref<2xf32>
  return %0 : memref<2xf32>
}
