// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// A conversion keeps the shape.

func.func @f(%x: vector<4xf32>) {
  // expected-error@+1 {{arith.fptosi: operand vector<4xf32> and result vector<3xi32> have different shapes}}
  %0 = "arith.fptosi"(%x) : (vector<4xf32>) -> vector<3xi32>
  return
}
