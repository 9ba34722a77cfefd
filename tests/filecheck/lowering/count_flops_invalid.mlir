// RUN: gradir-opt %s -p count-flops --split-input-file --verify-diagnostics

func.func @trips(%x: tensor<3xf32>, %n: index) -> tensor<3xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{the cost depends on the trips of a loop, known only at run time}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<3xf32>) {
    %e = nd.exp %s : tensor<3xf32>
    scf.yield %e : tensor<3xf32>
  }
  return %r : tensor<3xf32>
}

// -----

func.func @size(%x: tensor<?xf32, ["b"]>) -> tensor<?xf32, ["b"]> {
  // expected-error@+1 {{the cost depends on a dimension of size b, known only at run time}}
  %e = nd.exp %x : tensor<?xf32, ["b"]>
  return %e : tensor<?xf32, ["b"]>
}
