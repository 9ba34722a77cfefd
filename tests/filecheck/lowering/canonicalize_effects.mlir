// RUN: gradir-opt %s -p canonicalize | filecheck %s

// What is known to hold says nothing; what is known to fail stays, and so does what depends on the input.
// CHECK-LABEL: func.func @f
// CHECK-NOT:     "holds"
// CHECK:         "fails"
// CHECK-NOT:     "holds too"
// CHECK:         nd.assert %c, "depends"
func.func @f(%c: tensor<i1>) {
  %yes = arith.constant true
  %no = arith.constant false
  %sure = nd.constant splat(true) : tensor<i1>
  nd.assert %yes, "holds" : i1
  nd.assert %no, "fails" : i1
  nd.assert %sure, "holds too" : tensor<i1>
  nd.assert %c, "depends" : tensor<i1>
  return
}
