// RUN: not gradir-opt %s --split-input-file --load %S/Inputs/functions.py -p 'to-structured{target=cpu}' 2>&1 | filecheck %s
// RUN: not gradir-opt %s --split-input-file --load %S/Inputs/functions.py -p 'to-structured{target=cuda}' 2>&1 | filecheck %s --check-prefix=CUDA

// CUDA: error: nd.custom_call: @double has no kernel for the target cuda [operator OP052]
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nd.custom_call @double(%x) {config = {factor = 2 : i64}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK: error: nd.custom_call: no function is registered as @twice [operator OP050]
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nd.custom_call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK: error: {{.*}}nd.custom_call @double: result 0 must have type tensor<4xf32>, found tensor<5xf32>
func.func @f(%x: tensor<4xf32>) -> tensor<5xf32> {
  %0 = nd.custom_call @double(%x) {config = {factor = 2 : i64}} : (tensor<4xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
