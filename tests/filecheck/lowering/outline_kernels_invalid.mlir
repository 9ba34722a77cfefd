// RUN: gradir-opt %s -p outline-kernels --split-input-file --verify-diagnostics

#id = affine_map<(d0, d1) -> (d0, d1)>
#tr = affine_map<(d0, d1) -> (d1, d0)>
func.func @no_kind(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  // expected-error@+1 {{no kind of kernel computes these loop nests together}}
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) attrs = {gradir.group = 0 : i64} {
  ^bb0(%i: f32, %o: f32):
    %r = math.exp %i : f32
    linalg.yield %r : f32
  } -> tensor<4x4xf32>
  %f = tensor.empty() : tensor<4x4xf32>
  %b = linalg.generic {indexing_maps = [#tr, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) attrs = {gradir.group = 0 : i64} {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<4x4xf32>
  return %b : tensor<4x4xf32>
}
