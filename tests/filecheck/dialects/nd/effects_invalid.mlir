// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%c: tensor<2xi1>) {
  // expected-error@+1 {{nd.assert: the condition must be tensor<i1> or i1, found tensor<2xi1>}}
  nd.assert %c, "message" : tensor<2xi1>
  return
}

// -----

func.func @f(%c: tensor<f32>) {
  // expected-error@+1 {{nd.assert: the condition must be tensor<i1> or i1, found tensor<f32>}}
  nd.assert %c, "message" : tensor<f32>
  return
}

// -----

func.func @f(%c: i1) {
  // expected-error@+1 {{nd.assert: expected a message, found ""}}
  nd.assert %c, "" : i1
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.optimization_barrier: 1 operands need as many results, found 2}}
  %a, %b = "nd.optimization_barrier"(%x) : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.optimization_barrier: types differ: operand 0 has tensor<2xf32>, result 0 has tensor<3xf32>}}
  %a = "nd.optimization_barrier"(%x) : (tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{nd.optimization_barrier: expected at least one operand, found none}}
  "nd.optimization_barrier"() : () -> ()
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.print: the format shows 2 operands, found 1}}
  nd.print "{} {}", %x : tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error@+1 {{nd.print: bad format: only {} and {:spec} stand for operands, found {0}}}
  nd.print "{0}", %x : tensor<2xf32>
  return
}
