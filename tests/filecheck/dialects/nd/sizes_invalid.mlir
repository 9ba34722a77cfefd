// RUN: gradir-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<?x4xf32, ["b", ""]>) {
  // expected-error@+1 {{nd.dim: dim names dimension 2, operand has rank 2}}
  %0 = nd.dim %x dim 2 : tensor<?x4xf32, ["b", ""]>
  return
}

// -----

func.func @f(%x: tensor<?xf32, ["b+b"]>) {
  // expected-error@+1 {{the size "b+b" is written "2*b", in tensor<?xf32, ["b+b"]>}}
  %0 = nd.dim %x dim 0 : tensor<?xf32, ["b+b"]>
  return
}

// -----

func.func @f(%x: tensor<?xf32, ["b+"]>) {
  // expected-error@+1 {{"b+" is no size, in tensor<?xf32, ["b+"]>; expected a name such as b, or a text such as 2*b+1}}
  %0 = nd.dim %x dim 0 : tensor<?xf32, ["b+"]>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32, ["b", ""]>) {
  // expected-error@+1 {{nd.reshape: numbers of elements differ: operand has shape [b, 4], result has [2*b]}}
  %0 = nd.reshape %x : tensor<?x4xf32, ["b", ""]> -> tensor<?xf32, ["2*b"]>
  return
}

// -----

func.func @f(%x: tensor<?xf32, ["b"]>) {
  // expected-error@+1 {{nd.concatenate: result must have shape [2*b], found [b]}}
  %0 = nd.concatenate %x, %x dim 0 : tensor<?xf32, ["b"]>, tensor<?xf32, ["b"]> -> tensor<?xf32, ["b"]>
  return
}

// -----

func.func @f(%x: tensor<?xf32, ["b"]>) {
  // expected-error@+1 {{nd.slice: result must have shape [max(b-2,0)], found [b]}}
  %0 = nd.slice %x start [1] limit [-2] : tensor<?xf32, ["b"]> -> tensor<?xf32, ["b"]>
  return
}

// -----

func.func @f(%x: tensor<?xf32, ["b"]>, %v: tensor<f32>) {
  // expected-error@+1 {{nd.pad: result must have shape [b+3], found [b+2]}}
  %0 = nd.pad %x, %v low [1] high [2] : tensor<?xf32, ["b"]>, tensor<f32> -> tensor<?xf32, ["b+2"]>
  return
}

// -----

func.func @f(%x: tensor<?xf32, ["b"]>, %at: tensor<i32>) {
  // expected-error@+1 {{nd.dynamic_slice: dim 0: sizes has 2, result has k; -1 stands for a run-time size}}
  %0 = nd.dynamic_slice %x, %at sizes [2] : tensor<?xf32, ["b"]>, tensor<i32> -> tensor<?xf32, ["k"]>
  return
}
