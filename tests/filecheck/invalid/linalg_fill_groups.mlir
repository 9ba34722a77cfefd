// RUN: gradir-opt %s --split-input-file --verify-diagnostics

// linalg.fill has one input and one output.

func.func @f(%a: f32, %x: memref<4xf32>) {
  // expected-error@+1 {{linalg.fill: expected one input and one output, got 1 and 2}}
  "linalg.fill"(%a, %x, %x) <{operandSegmentSizes = array<i32: 1, 2>}> ({
  ^bb0(%i: f32, %o: f32, %p: f32):
    linalg.yield %i : f32
  }) : (f32, memref<4xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @f(%a: f32, %x: tensor<4xf32>) {
  // expected-error@+1 {{linalg.fill: results must be the types of the tensor outputs, tensor<4xf32>, found tensor<3xf32>}}
  %0 = "linalg.fill"(%a, %x) <{operandSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  }) : (f32, tensor<4xf32>) -> tensor<3xf32>
  return
}
