// 100 explicit steps of u' = a (laplacian of u) - sin(u) on 18 x 18 points, the border kept; a differs from point to point.
// The loss is the sum of squares after the last step; its gradient is asked for by the first state and by a.
//
// The neighbours are read as upstream MLIR allows it: a map `d + c` needs at least that many elements, a plain `d` exactly the extent,
// so the northern and western ones are slices.
#point = affine_map<(d0, d1) -> (d0, d1)>
#here = affine_map<(d0, d1) -> (d0 + 1, d1 + 1)>
#south = affine_map<(d0, d1) -> (d0 + 2, d1 + 1)>
#east = affine_map<(d0, d1) -> (d0 + 1, d1 + 2)>
#nothing = affine_map<(d0, d1) -> ()>

func.func private @step(%u: tensor<18x18xf64>, %a: tensor<16x16xf64>) -> tensor<18x18xf64> {
  %north = tensor.extract_slice %u[0, 1] [16, 16] [1, 1] : tensor<18x18xf64> to tensor<16x16xf64>
  %west = tensor.extract_slice %u[1, 0] [16, 16] [1, 1] : tensor<18x18xf64> to tensor<16x16xf64>
  %empty = tensor.empty() : tensor<16x16xf64>
  %inner = linalg.generic {indexing_maps = [#point, #here, #point, #south, #point, #east, #point], iterator_types = ["parallel", "parallel"]}
    ins(%a, %u, %north, %u, %west, %u : tensor<16x16xf64>, tensor<18x18xf64>, tensor<16x16xf64>, tensor<18x18xf64>, tensor<16x16xf64>, tensor<18x18xf64>)
    outs(%empty : tensor<16x16xf64>) {
  ^bb0(%ax: f64, %c: f64, %n: f64, %s: f64, %w: f64, %e: f64, %out: f64):
    %four = arith.constant 4.0 : f64
    %dt = arith.constant 0.1 : f64
    %ns = arith.addf %n, %s : f64
    %we = arith.addf %w, %e : f64
    %around = arith.addf %ns, %we : f64
    %four_c = arith.mulf %four, %c : f64
    %laplacian = arith.subf %around, %four_c : f64
    %flow = arith.mulf %ax, %laplacian : f64
    %reaction = math.sin %c : f64
    %rate = arith.subf %flow, %reaction : f64
    %change = arith.mulf %dt, %rate : f64
    %next = arith.addf %c, %change : f64
    linalg.yield %next : f64
  } -> tensor<16x16xf64>
  %v = tensor.insert_slice %inner into %u[1, 1] [16, 16] [1, 1] : tensor<16x16xf64> into tensor<18x18xf64>
  return %v : tensor<18x18xf64>
}

func.func private @loss(%u0: tensor<18x18xf64>, %a: tensor<16x16xf64>) -> tensor<f64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 100 : index
  %u = scf.for %t = %c0 to %steps step %c1 iter_args(%v = %u0) -> (tensor<18x18xf64>) {
    %next = func.call @step(%v, %a) : (tensor<18x18xf64>, tensor<16x16xf64>) -> tensor<18x18xf64>
    scf.yield %next : tensor<18x18xf64>
  }
  %zero = arith.constant 0.0 : f64
  %empty = tensor.empty() : tensor<f64>
  %start = linalg.fill ins(%zero : f64) outs(%empty : tensor<f64>) -> tensor<f64>
  %sum = linalg.generic {indexing_maps = [#point, #nothing], iterator_types = ["reduction", "reduction"]}
    ins(%u : tensor<18x18xf64>) outs(%start : tensor<f64>) {
  ^bb0(%x: f64, %acc: f64):
    %square = arith.mulf %x, %x : f64
    %more = arith.addf %acc, %square : f64
    linalg.yield %more : f64
  } -> tensor<f64>
  return %sum : tensor<f64>
}

func.func @value_and_grad(%u0: tensor<18x18xf64>, %a: tensor<16x16xf64>) -> (tensor<f64>, tensor<18x18xf64>, tensor<16x16xf64>) {
  %l, %du, %da = ad.value_and_grad @loss(%u0, %a) wrt [0, 1] : (tensor<18x18xf64>, tensor<16x16xf64>) -> (tensor<f64>, tensor<18x18xf64>, tensor<16x16xf64>)
  return %l, %du, %da : tensor<f64>, tensor<18x18xf64>, tensor<16x16xf64>
}
