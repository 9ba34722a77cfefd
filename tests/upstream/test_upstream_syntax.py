"""Every upstream op that levels 2 to 4 print: parses, prints, parses again to the same text, and `mlir-opt` agrees both ways."""

from __future__ import annotations

import pytest

from gradir.dialects.upstream import arith, vector
from tests.upstream.roundtrip import reprint, upstream

VALUES = (
    "%a: vector<4xf32>, %b: vector<8xf32>, %acc: vector<4x8xf32>, %s: f32, %m: memref<4x8xf32>, %i: index, %idx: vector<4xindex>, "
    "%k: vector<4xi1>, %k2: vector<4x8xi1>, %q: vector<4xi32>, %j: i32, %p: i1, %arena: memref<64xi8>, %d: memref<?x8xf32>, %r: memref<4xf32>, "
    '%x: tensor<4x8xf32>, %v: tensor<4xf32>, %vi: tensor<4xi32>, %t0: tensor<f32>, %dt: tensor<?x8xf32, ["b", ""]>, %t1: tensor<4xi1>, %h: vector<4xf16>'
)

CASES = {
    # arith
    "fptosi": "%0 = arith.fptosi %a : vector<4xf32> to vector<4xi32>",
    "fptoui": "%0 = arith.fptoui %s : f32 to i8",
    "sitofp": "%0 = arith.sitofp %q : vector<4xi32> to vector<4xf64>",
    "uitofp": "%0 = arith.uitofp %vi : tensor<4xi32> to tensor<4xf32>",
    "extsi": "%0 = arith.extsi %q : vector<4xi32> to vector<4xi64>",
    "extui": "%0 = arith.extui %k : vector<4xi1> to vector<4xi32>",
    "trunci": "%0 = arith.trunci %q : vector<4xi32> to vector<4xi8>",
    "extf": "%0 = arith.extf %h : vector<4xf16> to vector<4xf32>",
    "truncf": "%0 = arith.truncf %a : vector<4xf32> to vector<4xbf16>",
    "index_cast": "%0 = arith.index_cast %idx : vector<4xindex> to vector<4xi32>",
    "index_castui": "%0 = arith.index_castui %j : i32 to index",
    "bitcast": "%0 = arith.bitcast %a : vector<4xf32> to vector<4xi32>",
    "select": "%0 = arith.select %p, %a, %a : vector<4xf32>",
    "select lanes": "%0 = arith.select %k, %a, %a : vector<4xi1>, vector<4xf32>",
    "select tensor": "%0 = arith.select %t1, %v, %v : tensor<4xi1>, tensor<4xf32>",
    "cmpf": "%0 = arith.cmpf olt, %a, %a : vector<4xf32>",
    "cmpf fastmath": "%0 = arith.cmpf une, %s, %s fastmath<nnan> : f32",
    "cmpi": "%0 = arith.cmpi slt, %q, %q : vector<4xi32>",
    "cmpi tensor": "%0 = arith.cmpi uge, %vi, %vi : tensor<4xi32>",
    "cmpi index": "%0 = arith.cmpi eq, %i, %i : index",
    "constant": "%0 = arith.constant dense<[1.0, 2.0]> : vector<2xf32>",
    "constant splat": "%0 = arith.constant dense<0xFF800000> : vector<4x8xf32>",
    "constant nan": "%0 = arith.constant 0x7FC00000 : f32",
    "maximumf": "%0 = arith.maximumf %a, %a : vector<4xf32>",
    "addf fastmath": "%0 = arith.addf %a, %a fastmath<contract> : vector<4xf32>",
    "addi nsw": "%0 = arith.addi %i, %i overflow<nsw> : index",
    "remf": "%0 = arith.remf %a, %a : vector<4xf32>",
    "negf": "%0 = arith.negf %acc : vector<4x8xf32>",
    # math
    "exp": "%0 = math.exp %a : vector<4xf32>",
    "fma": "%0 = math.fma %s, %s, %s : f32",
    "copysign": "%0 = math.copysign %a, %a : vector<4xf32>",
    "roundeven": "%0 = math.roundeven %a : vector<4xf32>",
    "erfc": "%0 = math.erfc %a : vector<4xf32>",
    "isnan": "%0 = math.isnan %a : vector<4xf32>",
    "isfinite": "%0 = math.isfinite %s : f32",
    "isinf": "%0 = math.isinf %v : tensor<4xf32>",
    "isnormal": "%0 = math.isnormal %s : f32",
    "clampf": "%0 = math.clampf %a to [%a, %a] : vector<4xf32>",
    # vector
    "outerproduct": "%0 = vector.outerproduct %a, %b, %acc {kind = #vector.kind<add>} : vector<4xf32>, vector<8xf32>",
    "outerproduct no acc": "%0 = vector.outerproduct %a, %b {kind = #vector.kind<add>} : vector<4xf32>, vector<8xf32>",
    "outerproduct axpy": "%0 = vector.outerproduct %a, %s, %a {kind = #vector.kind<maximumf>} : vector<4xf32>, f32",
    "multi_reduction": "%0 = vector.multi_reduction <add>, %acc, %a [1] : vector<4x8xf32> to vector<4xf32>",
    "multi_reduction all": "%0 = vector.multi_reduction <maximumf>, %acc, %s [0, 1] : vector<4x8xf32> to f32",
    "contract": "%0 = vector.contract {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>], "
    'iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>} %acc, %b, %a : vector<4x8xf32>, vector<8xf32> into vector<4xf32>',
    "reduction": "%0 = vector.reduction <maximumf>, %a : vector<4xf32> into f32",
    "reduction fastmath": "%0 = vector.reduction <add>, %a, %s fastmath<reassoc> : vector<4xf32> into f32",
    "transpose": "%0 = vector.transpose %acc, [1, 0] : vector<4x8xf32> to vector<8x4xf32>",
    "shape_cast": "%0 = vector.shape_cast %acc : vector<4x8xf32> to vector<32xf32>",
    "step": "%0 = vector.step : vector<4xindex>",
    "constant_mask": "%0 = vector.constant_mask [2, 3] : vector<4x8xi1>",
    "create_mask": "%0 = vector.create_mask %i, %i : vector<4x8xi1>",
    "extract_strided_slice": "%0 = vector.extract_strided_slice %acc {offsets = [0, 2], sizes = [2, 4], strides = [1, 1]} : vector<4x8xf32> to vector<2x4xf32>",
    "insert_strided_slice": "%0 = vector.insert_strided_slice %a, %acc {offsets = [0, 2], strides = [1]} : vector<4xf32> into vector<4x8xf32>",
    "gather": "%0 = vector.gather %m[%i, %i] [%idx], %k, %a : memref<4x8xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>",
    "scatter": "vector.scatter %m[%i, %i] [%idx], %k, %a : memref<4x8xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32>",
    "from_elements": "%0 = vector.from_elements %s, %s : vector<2xf32>",
    "to_elements": "%0:4 = vector.to_elements %a : vector<4xf32>",
    "interleave": "%0 = vector.interleave %a, %a : vector<4xf32> -> vector<8xf32>",
    "deinterleave": "%0, %1 = vector.deinterleave %b : vector<8xf32> -> vector<4xf32>",
    "broadcast": "%0 = vector.broadcast %s : f32 to vector<4x8xf32>",
    "broadcast rows": "%0 = vector.broadcast %b : vector<8xf32> to vector<4x8xf32>",
    "vector.fma": "%0 = vector.fma %acc, %acc, %acc : vector<4x8xf32>",
    "extract row": "%0 = vector.extract %acc[0] : vector<8xf32> from vector<4x8xf32>",
    "extract element": "%0 = vector.extract %acc[%i, 3] : f32 from vector<4x8xf32>",
    "insert": "%0 = vector.insert %b, %acc [1] : vector<8xf32> into vector<4x8xf32>",
    "shuffle": "%0 = vector.shuffle %a, %a [0, 5, 2, 7] : vector<4xf32>, vector<4xf32>",
    "maskedload": "%0 = vector.maskedload %m[%i, %i], %k, %a : memref<4x8xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>",
    "maskedstore": "vector.maskedstore %m[%i, %i], %k, %a : memref<4x8xf32>, vector<4xi1>, vector<4xf32>",
    "load": "%0 = vector.load %m[%i, %i] : memref<4x8xf32>, vector<8xf32>",
    "store": "vector.store %b, %m[%i, %i] : memref<4x8xf32>, vector<8xf32>",
    "vector.bitcast": "%0 = vector.bitcast %a : vector<4xf32> to vector<4xi32>",
    "transfer_read column": "%0 = vector.transfer_read %m[%i, %i], %s {in_bounds = [true], permutation_map = affine_map<(d0, d1) -> (d0)>} "
    ": memref<4x8xf32>, vector<4xf32>",
    "transfer_read mask": "%0 = vector.transfer_read %m[%i, %i], %s, %k2 {in_bounds = [false, true]} : memref<4x8xf32>, vector<4x8xf32>",
    "transfer_read broadcast": "%0 = vector.transfer_read %m[%i, %i], %s {in_bounds = [true, true], permutation_map = affine_map<(d0, d1) -> (0, d1)>} "
    ": memref<4x8xf32>, vector<4x8xf32>",
    "transfer_write": "vector.transfer_write %acc, %m[%i, %i], %k2 {in_bounds = [true, false]} : vector<4x8xf32>, memref<4x8xf32>",
    "transfer_write column": "vector.transfer_write %a, %m[%i, %i] {in_bounds = [true], permutation_map = affine_map<(d0, d1) -> (d0)>} "
    ": vector<4xf32>, memref<4x8xf32>",
    "transfer_write tensor": "%0 = vector.transfer_write %acc, %x[%i, %i] {in_bounds = [true, false]} : vector<4x8xf32>, tensor<4x8xf32>",
    # linalg
    "linalg.fill": "%0 = linalg.fill ins(%s : f32) outs(%v : tensor<4xf32>) -> tensor<4xf32>",
    "linalg.fill memref": "linalg.fill ins(%s : f32) outs(%m : memref<4x8xf32>)",
    "linalg.copy": "%0 = linalg.copy ins(%x : tensor<4x8xf32>) outs(%x : tensor<4x8xf32>) -> tensor<4x8xf32>",
    "linalg.generic two results": """%0:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>,
      affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%v, %vi : tensor<4xf32>, tensor<4xi32>) attrs = {gradir.group = 1 : i64} {
    ^bb0(%e: f32, %f: f32, %g: i32):
      %c = linalg.index 1 : index
      %ci = arith.index_cast %c : index to i32
      %u = arith.addf %e, %f : f32
      linalg.yield %u, %ci : f32, i32
    } -> (tensor<4xf32>, tensor<4xi32>)""",
    "linalg.generic scalar": """%0 = linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%s : f32) outs(%v : tensor<4xf32>) {
    ^bb0(%e: f32, %f: f32):
      linalg.yield %e : f32
    } -> tensor<4xf32>""",
    "linalg.generic memref": """linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%r : memref<4xf32>) {
    ^bb0(%f: f32):
      linalg.yield %s : f32
    }""",
    # scf
    "scf.parallel": """scf.parallel (%n, %o) = (%i, %i) to (%i, %i) step (%i, %i) {
      memref.store %s, %m[%n, %o] : memref<4x8xf32>
      scf.reduce
    }""",
    "scf.parallel reduce": """%0 = scf.parallel (%n) = (%i) to (%i) step (%i) init (%s) -> f32 {
      %e = memref.load %r[%n] : memref<4xf32>
      scf.reduce(%e : f32) {
      ^bb0(%f: f32, %g: f32):
        %u = arith.addf %f, %g : f32
        scf.reduce.return %u : f32
      }
    }""",
    "scf.parallel two": """%0:2 = scf.parallel (%n) = (%i) to (%i) step (%i) init (%s, %j) -> (f32, i32) {
      %e = memref.load %r[%n] : memref<4xf32>
      scf.reduce(%e, %j : f32, i32) {
      ^bb0(%f: f32, %g: f32):
        scf.reduce.return %f : f32
      }, {
      ^bb0(%f: i32, %g: i32):
        scf.reduce.return %g : i32
      }
    }""",
    "scf.for": """%0 = scf.for %n = %i to %i step %i iter_args(%e = %v) -> (tensor<4xf32>) {
      scf.yield %e : tensor<4xf32>
    }""",
    "scf.if": """%0 = scf.if %p -> (f32) {
      scf.yield %s : f32
    } else {
      scf.yield %s : f32
    }""",
    "scf.while": """%0 = scf.while (%e = %s) : (f32) -> f32 {
      scf.condition(%p) %e : f32
    } do {
    ^bb0(%e: f32):
      scf.yield %e : f32
    }""",
    "scf.index_switch": """%0 = scf.index_switch %i -> f32
    case 2 {
      scf.yield %s : f32
    }
    default {
      scf.yield %s : f32
    }""",
    # memref
    "view": "%0 = memref.view %arena[%i][] : memref<64xi8> to memref<2x8xf32>",
    "view dynamic": "%0 = memref.view %arena[%i][%i] : memref<64xi8> to memref<?x2xf32>",
    "subview": "%0 = memref.subview %m[%i, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<8xf32, strided<[1], offset: ?>>",
    "subview strided": "%0 = memref.subview %m[0, 1] [%i, 3] [1, 2] : memref<4x8xf32> to memref<?x3xf32, strided<[8, 2], offset: 1>>",
    "memref.cast": "%0 = memref.cast %m : memref<4x8xf32> to memref<?x8xf32, strided<[8, 1], offset: ?>>",
    "memref.copy": "memref.copy %m, %d : memref<4x8xf32> to memref<?x8xf32>",
    "memref.dim": "%0 = memref.dim %d, %i : memref<?x8xf32>",
    "alloc": "%0 = memref.alloc() {alignment = 64 : i64} : memref<4xf32>",
    "alloc dynamic": "%0 = memref.alloc(%i) : memref<?x4xf32>",
    "alloca": "%0 = memref.alloca() : memref<4xf32>",
    "dealloc": "memref.dealloc %r : memref<4xf32>",
    "memref.load": "%0 = memref.load %m[%i, %i] : memref<4x8xf32>",
    "memref.store": "memref.store %s, %m[%i, %i] : memref<4x8xf32>",
    "reinterpret_cast": "%0 = memref.reinterpret_cast %m to offset: [0], sizes: [32], strides: [1] : memref<4x8xf32> to memref<32xf32, strided<[1]>>",
    "memref.collapse_shape": "%0 = memref.collapse_shape %m [[0, 1]] : memref<4x8xf32> into memref<32xf32>",
    "memref.expand_shape": "%0 = memref.expand_shape %r [[0, 1]] output_shape [2, 2] : memref<4xf32> into memref<2x2xf32>",
    "to_tensor": "%0 = bufferization.to_tensor %m restrict : memref<4x8xf32> to tensor<4x8xf32>",
    "materialize": "bufferization.materialize_in_destination %x in restrict writable %m : (tensor<4x8xf32>, memref<4x8xf32>) -> ()",
    # tensor
    "tensor.empty": "%0 = tensor.empty(%i) : tensor<?x8xf32>",
    "extract_slice": "%0 = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<8xf32>",
    "insert_slice": "%0 = tensor.insert_slice %v into %x[0, %i] [4, 1] [1, 1] : tensor<4xf32> into tensor<4x8xf32>",
    "tensor.extract": "%0 = tensor.extract %x[%i, %i] : tensor<4x8xf32>",
    "tensor.extract scalar": "%0 = tensor.extract %t0[] : tensor<f32>",
    "tensor.insert": "%0 = tensor.insert %s into %x[%i, %i] : tensor<4x8xf32>",
    "tensor.dim": '%0 = tensor.dim %dt, %i : tensor<?x8xf32, ["b", ""]>',
    "tensor.cast": '%0 = tensor.cast %dt : tensor<?x8xf32, ["b", ""]> to tensor<?x8xf32>',
    "from_elements scalar": "%0 = tensor.from_elements %s : tensor<f32>",
    "tensor.from_elements": "%0 = tensor.from_elements %s, %s : tensor<2xf32>",
    "tensor.collapse_shape": "%0 = tensor.collapse_shape %x [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>",
    "tensor.expand_shape": "%0 = tensor.expand_shape %v [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>",
    "tensor.splat": "%0 = tensor.splat %s : tensor<4xf32>",
    "tensor.pad": """%0 = tensor.pad %x low[1, 0] high[0, 2] {
    ^bb0(%n: index, %o: index):
      tensor.yield %s : f32
    } : tensor<4x8xf32> to tensor<5x10xf32>""",
    "cf.assert": 'cf.assert %p, "message"',
}


@pytest.mark.parametrize("name", CASES)
def test_op_round_trips_and_upstream_agrees(name: str) -> None:
    text = f"func.func @f({VALUES}) {{\n  {CASES[name]}\n  return\n}}"
    printed = reprint(text)
    assert reprint(printed) == printed
    back = upstream(printed)
    assert upstream(reprint(back)) == back


MODULES = {
    "global": 'memref.global "private" constant @w : memref<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]> {alignment = 64 : i64}',
    "global uninitialized": 'memref.global "private" @u : memref<2xf32> = uninitialized',
    "global external": "memref.global @e : memref<2xf32>",
    "global large": f'memref.global "private" constant @l : memref<200xi32> = dense<{list(range(200))}>',
    "global bool": 'memref.global "private" constant @b : memref<3xi1> = dense<[true, false, true]>',
    "argument attributes": 'func.func private @f(%a: memref<4xf32> {gradir.access = "read"}, %b: memref<4xf32> {gradir.alias = [0]}) '
    "attributes {gradir.inputs = 1 : i64} {\n  return\n}",
    "symbols in encodings": 'func.func @f(%a: tensor<?x64xf32, ["b", ""]>) -> tensor<?x64xf32, ["b", ""]> {\n'
    '  return %a : tensor<?x64xf32, ["b", ""]>\n}',
    "constants in a loop": """func.func @f(%a: memref<4xf32>) {
      %0 = memref.get_global @w : memref<2xf32>
      return
    }
    memref.global "private" constant @w : memref<2xf32> = dense<1.0>""",
}


@pytest.mark.parametrize("name", MODULES)
def test_module_round_trips_and_upstream_agrees(name: str) -> None:
    printed = reprint(MODULES[name])
    assert reprint(printed) == printed
    back = upstream(printed)
    assert upstream(reprint(back)) == back


INVALID = {
    "arith.fptosi: cannot convert i32 to f32": "%0 = arith.fptosi %j : i32 to f32",
    "have different shapes": "%0 = arith.fptosi %a : vector<4xf32> to vector<8xi32>",
    "must be wider than operand type i32": "%0 = arith.extsi %q : vector<4xi32> to vector<4xi8>",
    "must be narrower than operand type i32": "%0 = arith.trunci %j : i32 to i64",
    "unknown predicate 'lt', expected one of false, oeq": "%0 = arith.cmpf lt, %a, %a : vector<4xf32>",
    "arith.select: condition must be i1 or vector<4xi1>": '%0 = "arith.select"(%k2, %a, %a) : (vector<4x8xi1>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>',
    "no permutation of 2 dims": "%0 = vector.transpose %acc, [0, 0] : vector<4x8xf32> to vector<4x8xf32>",
    "result shape must be [8, 4]": "%0 = vector.transpose %acc, [1, 0] : vector<4x8xf32> to vector<4x8xf32>",
    "different numbers of elements": "%0 = vector.shape_cast %acc : vector<4x8xf32> to vector<31xf32>",
    "sizes [5] do not fit": "%0 = vector.constant_mask [5] : vector<4xi1>",
    "exceed vector<4x8xf32>": "%0 = vector.extract_strided_slice %acc {offsets = [3], sizes = [2], strides = [1]} : vector<4x8xf32> to vector<2x8xf32>",
    "accumulator and result must be vector<4x8xf32>": '%0 = "vector.outerproduct"(%a, %b, %a) {kind = #vector.kind<add>} '
    ": (vector<4xf32>, vector<8xf32>, vector<4xf32>) -> vector<4x8xf32>",
    "result must be vector<4xf32>": "%0 = vector.multi_reduction <add>, %acc, %b [1] : vector<4x8xf32> to vector<8xf32>",
    "loop 1 has 8 and 4 steps": "%0 = vector.contract {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>], "
    'iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>} %acc, %a, %a : vector<4x8xf32>, vector<4xf32> into vector<4xf32>',
    "expected 2 sizes": "%0 = vector.create_mask %i : vector<4x8xi1>",
    "shapes differ": "memref.copy %m, %r : memref<4x8xf32> to memref<4xf32>",
    "expected an array iterator_types": "linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>]} outs(%r : memref<4xf32>) {\n^bb0(%f: f32):\n}",
    "unknown iterator type": 'linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["serial"]} outs(%r : memref<4xf32>) {\n^bb0(%f: f32):\n}',
    "initial values, operands of scf.reduce and results": "%0 = scf.parallel (%n) = (%i) to (%i) step (%i) init (%s) -> f32 {\n scf.reduce\n }",
    "expected floats and i1 of one shape": '%0 = "math.isnan"(%j) : (i32) -> i1',
    "expected 2 offsets": "vector.scatter %m[%i] [%idx], %k, %a : memref<4x8xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32>",
}


@pytest.mark.parametrize("message", INVALID)
def test_invalid_op_is_refused(message: str) -> None:
    text = f"func.func @f({VALUES}) {{\n  {INVALID[message]}\n  return\n}}"
    with pytest.raises(Exception) as caught:
        reprint(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("literal", "printed"),
    [
        ("dense<0xFF800000> : tensor<2xf32>", "dense<0xff800000> : tensor<2xf32>"),
        ("dense<[0x7FC00000, 1.0]> : tensor<2xf32>", "dense<[0x7fc00000, 1.000000e+00]> : tensor<2xf32>"),
        ("dense<0x10> : tensor<2xi32>", "dense<16> : tensor<2xi32>"),
    ],
)
def test_hexadecimal_elements_of_floats_are_bits(literal: str, printed: str) -> None:
    text = reprint(f"func.func @f() {{\n%0 = arith.constant {literal}\nreturn\n}}")
    assert printed in text.lower()
    assert reprint(text) == text


def test_hexadecimal_element_must_fit() -> None:
    with pytest.raises(Exception, match="out of range"):
        reprint("func.func @f() {\n%0 = arith.constant dense<0x1FFFFFFFF> : tensor<2xf32>\nreturn\n}")


def test_one_class_per_name() -> None:
    for dialect in (arith.Arith, vector.Vector):
        names = [op.name for op in dialect.operations]
        assert len(names) == len(set(names))
    assert arith.CmpfOp in list(arith.Arith.operations)
