// RUN: gradir-opt %s -p normalize-nests --split-input-file | filecheck %s
// RUN: gradir-opt %s -p normalize-nests,fuse,outline-kernels --split-input-file --check-semantics | filecheck %s --check-prefix=SAME

// What a sum is added to is joined afterwards: a kernel starts from a number.
// CHECK-LABEL: func.func @onto
// CHECK:         %[[FILL:.*]] = linalg.fill
// CHECK:         %[[SUM:.*]] = linalg.generic {{.*}} ins(%x : {{.*}}) outs(%[[FILL]] :
// CHECK:         linalg.generic {{.*}}["parallel"]} ins(%z, %[[SUM]] :
// CHECK:           arith.addf
// SAME-LABEL: func.func @onto
#x = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i, j) -> (i)>
func.func @onto(%x: tensor<3x4xf32>, %z: tensor<3xf32>) -> tensor<3xf32> {
  %r = linalg.generic {indexing_maps = [#x, #r], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x4xf32>) outs(%z : tensor<3xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

// One nest for each result; the values of all points are parallel.
// CHECK-LABEL: func.func @two
// CHECK:         linalg.generic {{.*}}["parallel", "parallel"]}
// CHECK:         linalg.generic {{.*}}["parallel", "reduction"]}
// SAME-LABEL: func.func @two
#x = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i, j) -> (i)>
func.func @two(%x: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x4xf32>
  %f = tensor.empty() : tensor<3xf32>
  %z = linalg.fill ins(%zero : f32) outs(%f : tensor<3xf32>) -> tensor<3xf32>
  %y, %s = linalg.generic {indexing_maps = [#x, #x, #r], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x4xf32>)
    outs(%e, %z : tensor<3x4xf32>, tensor<3xf32>) {
  ^bb0(%a: f32, %o: f32, %acc: f32):
    %p = math.exp %a : f32
    %t = arith.addf %acc, %p : f32
    linalg.yield %p, %t : f32, f32
  } -> (tensor<3x4xf32>, tensor<3xf32>)
  return %y, %s : tensor<3x4xf32>, tensor<3xf32>
}

// -----

// The largest element and where it is: each depends on the other, so the reduction is a loop in order.
// CHECK-LABEL: func.func @where
// CHECK:         scf.for
// CHECK:           linalg.generic {{.*}}["parallel"]}
// CHECK:           linalg.generic {{.*}}["parallel"]}
// CHECK:           scf.yield
// SAME-LABEL: func.func @where
#x = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i, j) -> (i)>
func.func @where(%x: tensor<3x4xf32>, %m: tensor<3xf32>, %k: tensor<3xi64>) -> (tensor<3xf32>, tensor<3xi64>) {
  %y, %s = linalg.generic {indexing_maps = [#x, #r, #r], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x4xf32>)
    outs(%m, %k : tensor<3xf32>, tensor<3xi64>) {
  ^bb0(%a: f32, %best: f32, %at: i64):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i64
    %more = arith.cmpf ogt, %a, %best : f32
    %p = arith.select %more, %a, %best : f32
    %q = arith.select %more, %here, %at : i64
    linalg.yield %p, %q : f32, i64
  } -> (tensor<3xf32>, tensor<3xi64>)
  return %y, %s : tensor<3xf32>, tensor<3xi64>
}

// -----

// A result that is written at `2 i + 1` is inserted as a slice.
// CHECK-LABEL: func.func @shifted
// CHECK:         %[[PART:.*]] = linalg.generic
// CHECK:         tensor.insert_slice %[[PART]] into %z[1] [3] [2]
// SAME-LABEL: func.func @shifted
#x = affine_map<(i) -> (i)>
#y = affine_map<(i) -> (i * 2 + 1)>
func.func @shifted(%x: tensor<3xf32>, %z: tensor<7xf32>) -> tensor<7xf32> {
  %r = linalg.generic {indexing_maps = [#x, #y], iterator_types = ["parallel"]} ins(%x : tensor<3xf32>) outs(%z : tensor<7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.mulf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<7xf32>
  return %r : tensor<7xf32>
}

// -----

// CHECK-LABEL: func.func @whole
// CHECK:         linalg.fill
// CHECK:         tensor.insert_slice %x into
// CHECK:         tensor.insert_slice
// CHECK:         tensor.insert_slice
// CHECK:         linalg.generic
// CHECK:           arith.addf
// CHECK-NOT:     tensor.pad
// CHECK-NOT:     tensor.concat
// SAME-LABEL: func.func @whole
func.func @whole(%x: tensor<3xf32>, %y: tensor<2xf32>, %v: f32) -> tensor<5xf32> {
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %v : f32
  } : tensor<3xf32> to tensor<5xf32>
  %c = tensor.concat dim(0) %x, %y : (tensor<3xf32>, tensor<2xf32>) -> tensor<5xf32>
  %s = arith.addf %p, %c : tensor<5xf32>
  return %s : tensor<5xf32>
}

// -----

// An output along a reduction has an element for each of its points: they are parallel.
// CHECK-LABEL: func.func @along
// CHECK:         linalg.generic {{.*}}["parallel", "parallel"]} ins(%x, %y
// SAME-LABEL: func.func @along
#x = affine_map<(i, j) -> (i, j)>
func.func @along(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = linalg.generic {indexing_maps = [#x, #x], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x4xf32>) outs(%y : tensor<3x4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
