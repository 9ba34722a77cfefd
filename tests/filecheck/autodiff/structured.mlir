// RUN: gradir-opt %s -p differentiate --split-input-file | filecheck %s
// RUN: gradir-opt %s -p differentiate,inline,symbol-dce --split-input-file --check-semantics | filecheck %s --check-prefix=SAME

// The body runs again, and back; its product with the cotangent is strong.
// CHECK-LABEL: func.func private @f.vjp_0
// CHECK:         %[[Y:.*]] = linalg.generic
// CHECK:           math.exp
// CHECK:         tensor.empty
// CHECK:         %[[DX:.*]] = linalg.generic {{.*}}iterator_types = ["parallel"]} ins(%x, %dr :
// CHECK:           %[[E:.*]] = math.exp
// CHECK:           %[[P:.*]] = arith.mulf %{{.*}}, %[[E]]
// CHECK:           arith.select %{{.*}}, %{{.*}}, %[[P]]
// CHECK:         return %[[Y]], %[[DX]]
// SAME-LABEL: func.func @g
#id = affine_map<(i) -> (i)>
func.func private @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  %e = tensor.empty() : tensor<4xf64>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf64>) outs(%e : tensor<4xf64>) {
  ^bb0(%a: f64, %o: f64):
    %y = math.exp %a : f64
    linalg.yield %y : f64
  } -> tensor<4xf64>
  return %r : tensor<4xf64>
}
func.func @g(%x: tensor<4xf64>, %c: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>) {
  %r:2 = ad.vjp @f(%x, %c) wrt [0] : (tensor<4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
  return %r#0, %r#1 : tensor<4xf64>, tensor<4xf64>
}

// -----

// A window: a loop over it, around a nest that adds into the slice of the cotangent that it is over.
// CHECK-LABEL: func.func private @f.vjp_0
// CHECK:         linalg.generic
// CHECK:         scf.for %[[K:.*]] = {{.*}} iter_args(%[[ACC:.*]] =
// CHECK:           %[[W:.*]] = tensor.extract %w[%[[K]]]
// CHECK:           %[[PART:.*]] = tensor.extract_slice %[[ACC]][%[[K]]] [6] [2] : tensor<13xf64> to tensor<6xf64>
// CHECK:           %[[NEW:.*]] = linalg.generic {{.*}}iterator_types = ["parallel"]} ins(%[[W]], %{{.*}}) outs(%[[PART]] :
// CHECK:           tensor.insert_slice %[[NEW]] into %[[ACC]][%[[K]]] [6] [2]
// SAME-LABEL: func.func @g
#x = affine_map<(i, k) -> (i * 2 + k)>
#w = affine_map<(i, k) -> (k)>
#y = affine_map<(i, k) -> (i)>
func.func private @f(%x: tensor<13xf64>, %w: tensor<3xf64>, %z: tensor<6xf64>) -> tensor<6xf64> {
  %r = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "reduction"]}
    ins(%x, %w : tensor<13xf64>, tensor<3xf64>) outs(%z : tensor<6xf64>) {
  ^bb0(%a: f64, %b: f64, %acc: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %acc, %p : f64
    linalg.yield %s : f64
  } -> tensor<6xf64>
  return %r : tensor<6xf64>
}
func.func @g(%x: tensor<13xf64>, %w: tensor<3xf64>, %z: tensor<6xf64>, %c: tensor<6xf64>) -> tensor<13xf64> {
  %r:2 = ad.vjp @f(%x, %w, %z, %c) wrt [0] : (tensor<13xf64>, tensor<3xf64>, tensor<6xf64>, tensor<6xf64>) -> (tensor<6xf64>, tensor<13xf64>)
  return %r#1 : tensor<13xf64>
}

// -----

// A product runs in order: the loop keeps what was multiplied so far, so that nothing is divided.
// CHECK-LABEL: func.func private @f.vjp_0
// CHECK:         scf.for
// CHECK:           nd.update_at
// CHECK:         scf.for
// CHECK:           nd.index_at
// CHECK-NOT:     arith.divf
// CHECK:         return
// SAME-LABEL: func.func @g
#x = affine_map<(i) -> (i)>
#r = affine_map<(i) -> ()>
func.func private @f(%x: tensor<4xf64>, %z: tensor<f64>) -> tensor<f64> {
  %r = linalg.generic {indexing_maps = [#x, #r], iterator_types = ["reduction"]} ins(%x : tensor<4xf64>) outs(%z : tensor<f64>) {
  ^bb0(%a: f64, %acc: f64):
    %s = arith.mulf %acc, %a : f64
    linalg.yield %s : f64
  } -> tensor<f64>
  return %r : tensor<f64>
}
func.func @g(%x: tensor<4xf64>, %z: tensor<f64>, %c: tensor<f64>) -> tensor<4xf64> {
  %r:2 = ad.vjp @f(%x, %z, %c) wrt [0] : (tensor<4xf64>, tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<4xf64>)
  return %r#1 : tensor<4xf64>
}

// -----

// Forward mode: the body with tangents.
// CHECK-LABEL: func.func private @f.jvp
// CHECK-SAME:    (%x: tensor<4xf64>, %dx: tensor<4xf64>)
// CHECK:         linalg.generic
// CHECK:         linalg.generic {{.*}} ins(%x, %dx :
// CHECK:           math.cos
// SAME-LABEL: func.func @g
#id = affine_map<(i) -> (i)>
func.func private @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  %e = tensor.empty() : tensor<4xf64>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf64>) outs(%e : tensor<4xf64>) {
  ^bb0(%a: f64, %o: f64):
    %y = math.sin %a : f64
    linalg.yield %y : f64
  } -> tensor<4xf64>
  return %r : tensor<4xf64>
}
func.func @g(%x: tensor<4xf64>, %t: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>) {
  %r:2 = ad.jvp @f(%x, %t) wrt [0] : (tensor<4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
  return %r#0, %r#1 : tensor<4xf64>, tensor<4xf64>
}

// -----

// Many at once: one more parallel dimension in front.
// CHECK-LABEL: func.func private @f.batch
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]}
// SAME-LABEL: func.func @g
#x = affine_map<(i, j) -> (i, j)>
#w = affine_map<(i, j) -> (j)>
#y = affine_map<(i, j) -> (i)>
func.func private @f(%x: tensor<3x4xf64>, %w: tensor<4xf64>) -> tensor<3xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<3xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<3xf64>) -> tensor<3xf64>
  %r = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "reduction"]}
    ins(%x, %w : tensor<3x4xf64>, tensor<4xf64>) outs(%z : tensor<3xf64>) {
  ^bb0(%a: f64, %b: f64, %acc: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %acc, %p : f64
    linalg.yield %s : f64
  } -> tensor<3xf64>
  return %r : tensor<3xf64>
}
func.func @g(%x: tensor<5x3x4xf64>, %w: tensor<4xf64>) -> tensor<5x3xf64> {
  %r = ad.batch @f(%x, %w) over [0] : (tensor<5x3x4xf64>, tensor<4xf64>) -> tensor<5x3xf64>
  return %r : tensor<5x3xf64>
}
