// A named pipeline is its passes: each is shown, timed and checked by itself.
// RUN: gradir-opt %s -p 'to-structured{target=cpu},to-buffers' --print-ir-after=to-structured --print-ir-after=bufferize --timing -o /dev/null 2>&1 | filecheck %s
// RUN: not gradir-opt %s -p 'to-structured{target=cpu},to-structured{target=cuda}' 2>&1 | filecheck %s --check-prefix=CONFLICT

// CHECK-NOT:  IR Dump After cse
// CHECK:      // -----// IR Dump After to-structured //----- //
// CHECK-NEXT: builtin.module attributes {gradir.target = #target.cpu
// CHECK:      func.func private @elementwise_0
// CHECK:      // -----// IR Dump After bufferize //----- //
// CHECK:      func.func @f(%x: memref<4xf32>
// CHECK-NOT:  IR Dump
// CHECK:      'to-structured' Pipeline
// CHECK-NEXT:   set-target
// CHECK:        cse
// CHECK:      'to-buffers' Pipeline
// CHECK-NEXT:   bufferize
// CONFLICT:   set the target once
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nd.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
