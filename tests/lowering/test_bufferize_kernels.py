"""Kernels in bufferize: which operands are updated in place, templates, temporaries, windows."""

from __future__ import annotations

import numpy as np

from gradir.ir.text import parse_module
from gradir.lowering.bufferize.in_place import in_place_pairs
from tests.lowering.bufferize_checks import Checked, program
from tests.lowering.bufferize_programs import CELL, KERNELS, TEMPLATE, call


def test_which_operands_may_be_updated_in_place() -> None:
    text = "module {\n" + "".join(text for _, _, text in KERNELS.values()) + "}\n"
    functions = {f.sym_name.data: f for f in parse_module(text).body.block.ops}
    pairs = {name: in_place_pairs(functions[name], outputs) for name, (_, outputs, _) in KERNELS.items()}
    assert pairs["mean"] == {(0, 0), (1, 0)}
    assert pairs["scale"] == {(0, 0)}
    assert pairs["flip"] == pairs["product"] == pairs["zeros"] == frozenset()
    assert pairs["flipped_mean"] == {(0, 0)}
    assert pairs["accumulate"] == {(2, 0)}
    assert pairs["both"] == {(0, 1), (1, 1)}  # the first result is written while the second still needs the operands


_ROWS = """#x = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i, j) -> (i)>
module {
  func.func private @softmax_like(%a: tensor<3x4xf32>, %b: tensor<3x4xf32>, %d: tensor<3x4xf32>) -> tensor<3x4xf32>
      attributes {gradir.kernel = #kernel.rows<>} {
    %zero = arith.constant 0.0 : f32
    %t = tensor.empty() : tensor<3xf32>
    %f = linalg.fill ins(%zero : f32) outs(%t : tensor<3xf32>) -> tensor<3xf32>
    %s = linalg.generic {indexing_maps = [#x, #r], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<3x4xf32>) outs(%f : tensor<3xf32>) {
    ^bb0(%p: f32, %o: f32):
      %0 = arith.addf %o, %p : f32
      linalg.yield %0 : f32
    } -> tensor<3xf32>
    %r = linalg.generic {indexing_maps = [#x, #r, #x, #x], iterator_types = ["parallel", "parallel"]}
        ins(%a, %s, %b : tensor<3x4xf32>, tensor<3xf32>, tensor<3x4xf32>) outs(%d : tensor<3x4xf32>) {
    ^bb0(%p: f32, %q: f32, %w: f32, %o: f32):
      %0 = arith.subf %p, %q : f32
      %1 = arith.addf %0, %w : f32
      linalg.yield %1 : f32
    } -> tensor<3x4xf32>
    return %r : tensor<3x4xf32>
  }
}
"""


def test_an_operand_that_a_reduction_reads_is_not_updated_in_place() -> None:
    kernel = next(iter(parse_module(_ROWS).body.block.ops))
    assert in_place_pairs(kernel, 1) == {(1, 0)}


_EARLY = """#x = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i, j) -> (i)>
module {
  func.func private @two_sweeps(%a: tensor<3x4xf32>, %b: tensor<3x4xf32>, %d: tensor<3x4xf32>, %e: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>)
      attributes {gradir.kernel = #kernel.rows<>} {
    %zero = arith.constant 0.0 : f32
    %u = tensor.empty() : tensor<3x4xf32>
    %t = linalg.generic {indexing_maps = [#x, #x], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<3x4xf32>) outs(%u : tensor<3x4xf32>) {
    ^bb0(%p: f32, %o: f32):
      %0 = math.exp %p : f32
      linalg.yield %0 : f32
    } -> tensor<3x4xf32>
    %v = tensor.empty() : tensor<3xf32>
    %f = linalg.fill ins(%zero : f32) outs(%v : tensor<3xf32>) -> tensor<3xf32>
    %s = linalg.generic {indexing_maps = [#x, #r], iterator_types = ["parallel", "reduction"]} ins(%b : tensor<3x4xf32>) outs(%f : tensor<3xf32>) {
    ^bb0(%p: f32, %o: f32):
      %0 = arith.addf %o, %p : f32
      linalg.yield %0 : f32
    } -> tensor<3xf32>
    %w = linalg.generic {indexing_maps = [#x, #x], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<3x4xf32>) outs(%d : tensor<3x4xf32>) {
    ^bb0(%p: f32, %o: f32):
      %0 = arith.negf %p : f32
      linalg.yield %0 : f32
    } -> tensor<3x4xf32>
    %r = linalg.generic {indexing_maps = [#x, #r, #x], iterator_types = ["parallel", "parallel"]} ins(%t, %s : tensor<3x4xf32>, tensor<3xf32>) outs(%e : tensor<3x4xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %0 = arith.divf %p, %q : f32
      linalg.yield %0 : f32
    } -> tensor<3x4xf32>
    return %w, %r : tensor<3x4xf32>, tensor<3x4xf32>
  }
}
"""


def test_a_result_of_an_early_sweep_is_not_written_over_what_a_later_sweep_computes_again() -> None:
    kernel = next(iter(parse_module(_EARLY).body.block.ops))
    assert (0, 0) not in in_place_pairs(kernel, 2)


def test_templates_store_into_their_destination_and_destinations_may_be_updated() -> None:
    checked = Checked(TEMPLATE).agrees([np.array([0, 1, 1, 3, 3, 3], np.int32), np.arange(4, dtype=np.float32)])
    assert 'gradir.access = "write"' in checked.text and 'gradir.access = "readwrite"' in checked.text
    assert checked.copies == {"f": ["memref<4xf32>"]}  # the argument, once; the second call updates in place
    kernels = checked.text[: checked.text.index("func.func @f")]
    assert "memref.alloc" not in kernels and "memref.copy" not in kernels


def test_temporaries_of_kernels_are_written_once() -> None:
    checked = program(call("%t", "accumulate", "%x", "%y", "%x") + f"return %t : {CELL}")
    kernel = checked.text[checked.text.index("@accumulate") :]
    kernel = kernel[: kernel.index("func.return")]
    assert kernel.count("memref.alloc") == kernel.count("memref.dealloc") == 2
    assert "memref.copy" not in kernel


def test_a_gather_in_a_body_becomes_a_load_and_a_window_operand_memory_never_written() -> None:
    text = """#w = affine_map<(i, k) -> (i + k)>
#k = affine_map<(i, k) -> (k)>
#o = affine_map<(i, k) -> (i)>
#i = affine_map<(i) -> (i)>
module {
  func.func private @windows(%a: tensor<6xf32>, %d: tensor<4xf32>) -> tensor<4xf32> attributes {gradir.kernel = #kernel.loops<>} {
    %zero = arith.constant 0.0 : f32
    %w = tensor.empty() : tensor<3xf32>
    %f = linalg.fill ins(%zero : f32) outs(%d : tensor<4xf32>) -> tensor<4xf32>
    %r = linalg.generic {indexing_maps = [#w, #k, #o], iterator_types = ["parallel", "reduction"]}
        ins(%a, %w : tensor<6xf32>, tensor<3xf32>) outs(%f : tensor<4xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %0 = arith.addf %o, %p : f32
      linalg.yield %0 : f32
    } -> tensor<4xf32>
    return %r : tensor<4xf32>
  }
  func.func private @take(%a: tensor<4xf32>, %k: tensor<4xi32>, %d: tensor<4xf32>) -> tensor<4xf32> attributes {gradir.kernel = #kernel.elementwise<>} {
    %r = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%k : tensor<4xi32>) outs(%d : tensor<4xf32>) {
    ^bb0(%p: i32, %o: f32):
      %0 = arith.index_cast %p : i32 to index
      %1 = tensor.extract %a[%0] : tensor<4xf32>
      linalg.yield %1 : f32
    } -> tensor<4xf32>
    return %r : tensor<4xf32>
  }
  func.func @f(%x: tensor<6xf32>, %k: tensor<4xi32>) -> tensor<4xf32> {
    %e = tensor.empty() : tensor<4xf32>
    %h = func.call @windows(%x, %e) : (tensor<6xf32>, tensor<4xf32>) -> tensor<4xf32>
    %e2 = tensor.empty() : tensor<4xf32>
    %g = func.call @take(%h, %k, %e2) : (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4xf32>
    return %g : tensor<4xf32>
  }
}"""
    checked = Checked(text).agrees([np.arange(6, dtype=np.float32), np.array([3, 0, 2, 2], np.int32)])
    assert "memref.load" in checked.text
    assert in_place_pairs(list(parse_module(text).body.block.ops)[1], 1) == frozenset()
