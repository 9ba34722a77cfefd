"""Whole programs from level 1 to ordered kernels: same results, few kernels, no whole-tensor copies, linear work."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from gradir.autodiff.differentiate import Differentiate
from gradir.dialects.kernel import KERNEL_ATTRIBUTE
from gradir.dialects.upstream import func, linalg, scf, tensor
from gradir.errors import GradirError
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, print_module
from gradir.lowering import groups
from gradir.lowering.convert_nd_to_linalg import ConvertNdToLinalg
from gradir.lowering.cse import Cse
from gradir.lowering.dce import Dce
from gradir.lowering.dependences import dependences
from gradir.lowering.fuse import Fuse
from gradir.lowering.inline import Inline
from gradir.lowering.nd_expand import NdExpand
from gradir.lowering.order_kernels import OrderKernels
from gradir.lowering.outline_kernels import OutlineKernels
from gradir.lowering.symbol_dce import SymbolDce
from gradir.reference import run

MLP = """
func.func private @loss(%w1: tensor<6x8xf32>, %b1: tensor<8xf32>, %w2: tensor<8x4xf32>, %b2: tensor<4xf32>, %x: tensor<5x6xf32>, %y: tensor<5xi32>) -> tensor<f32> {
  %0 = nd.dot_general %x, %w1 contract [1] x [0] : tensor<5x6xf32>, tensor<6x8xf32> -> tensor<5x8xf32>
  %1 = nd.broadcast %b1 dims [1] : tensor<8xf32> -> tensor<5x8xf32>
  %2 = nd.add %0, %1 : tensor<5x8xf32>
  %h = nd.relu %2 : tensor<5x8xf32>
  %3 = nd.dot_general %h, %w2 contract [1] x [0] : tensor<5x8xf32>, tensor<8x4xf32> -> tensor<5x4xf32>
  %4 = nd.broadcast %b2 dims [1] : tensor<4xf32> -> tensor<5x4xf32>
  %5 = nd.add %3, %4 : tensor<5x4xf32>
  %l = nd.cross_entropy %5, %y : tensor<5x4xf32>, tensor<5xi32> -> tensor<5xf32>
  %s = nd.reduce_sum %l dims [0] : tensor<5xf32> -> tensor<f32>
  return %s : tensor<f32>
}
func.func @step(%w1: tensor<6x8xf32>, %b1: tensor<8xf32>, %w2: tensor<8x4xf32>, %b2: tensor<4xf32>, %x: tensor<5x6xf32>, %y: tensor<5xi32>) -> (tensor<f32>, tensor<6x8xf32>, tensor<8xf32>, tensor<8x4xf32>, tensor<4xf32>) {
  %l, %d1, %d2, %d3, %d4 = ad.value_and_grad @loss(%w1, %b1, %w2, %b2, %x, %y) wrt [0, 1, 2, 3] : (tensor<6x8xf32>, tensor<8xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<5x6xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<6x8xf32>, tensor<8xf32>, tensor<8x4xf32>, tensor<4xf32>)
  %lr = nd.constant splat(0.1 : f32) : tensor<6x8xf32>
  %u = nd.mul %d1, %lr : tensor<6x8xf32>
  %n1 = nd.sub %w1, %u : tensor<6x8xf32>
  return %l, %n1, %d2, %d3, %d4 : tensor<f32>, tensor<6x8xf32>, tensor<8xf32>, tensor<8x4xf32>, tensor<4xf32>
}
"""

RNN = """
func.func private @loss(%w: tensor<3x4xf32>, %u: tensor<4x4xf32>, %h0: tensor<2x4xf32>, %x: tensor<5x2x3xf32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 5 : index
  %h = scf.for %t = %c0 to %n step %c1 iter_args(%p = %h0) -> (tensor<2x4xf32>) {
    %xt = nd.index_at %x[%t] dim 0 : tensor<5x2x3xf32> -> tensor<2x3xf32>
    %a = nd.dot_general %xt, %w contract [1] x [0] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
    %b = nd.dot_general %p, %u contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
    %s = nd.add %a, %b : tensor<2x4xf32>
    %r = nd.tanh %s : tensor<2x4xf32>
    scf.yield %r : tensor<2x4xf32>
  }
  %q = nd.mul %h, %h : tensor<2x4xf32>
  %l = nd.reduce_sum %q dims [0, 1] : tensor<2x4xf32> -> tensor<f32>
  return %l : tensor<f32>
}
func.func @step(%w: tensor<3x4xf32>, %u: tensor<4x4xf32>, %h0: tensor<2x4xf32>, %x: tensor<5x2x3xf32>) -> (tensor<f32>, tensor<3x4xf32>, tensor<4x4xf32>, tensor<2x4xf32>) {
  %l, %dw, %du, %dh = ad.value_and_grad @loss(%w, %u, %h0, %x) wrt [0, 1, 2] : (tensor<3x4xf32>, tensor<4x4xf32>, tensor<2x4xf32>, tensor<5x2x3xf32>) -> (tensor<f32>, tensor<3x4xf32>, tensor<4x4xf32>, tensor<2x4xf32>)
  return %l, %dw, %du, %dh : tensor<f32>, tensor<3x4xf32>, tensor<4x4xf32>, tensor<2x4xf32>
}
"""

DYNAMIC = """
func.func @step(%x: tensor<?x3xf32, ["b", ""]>, %w: tensor<3x4xf32>) -> (tensor<?x4xf32, ["b", ""]>, tensor<f32>) {
  %n = nd.symbol "b"
  %d = nd.dot_general %x, %w contract [1] x [0] : tensor<?x3xf32, ["b", ""]>, tensor<3x4xf32> -> tensor<?x4xf32, ["b", ""]>
  %c = nd.constant splat(0.5 : f32) : tensor<f32>
  %h = nd.broadcast %c dims [] sizes (%n) : tensor<f32> -> tensor<?x4xf32, ["b", ""]>
  %y = nd.mul %d, %h : tensor<?x4xf32, ["b", ""]>
  %m = nd.softmax %y dim 1 : tensor<?x4xf32, ["b", ""]>
  %s = nd.reduce_sum %m dims [0, 1] : tensor<?x4xf32, ["b", ""]> -> tensor<f32>
  return %m, %s : tensor<?x4xf32, ["b", ""]>, tensor<f32>
}
"""


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


PROGRAMS = {
    "mlp": (MLP, (normal(6, 8), normal(8), normal(8, 4), normal(4), normal(5, 6), np.array([0, 3, 1, 1, 2], np.int32))),
    "rnn": (RNN, (normal(3, 4), normal(4, 4), normal(2, 4), normal(5, 2, 3))),
    "dynamic": (DYNAMIC, (normal(7, 3), normal(3, 4))),
    "dynamic, empty": (DYNAMIC, (normal(0, 3), normal(3, 4))),
}
TO_TENSORS = (Differentiate(), Inline(), SymbolDce(), NdExpand(), Cse(), Dce())
TO_KERNELS = (ConvertNdToLinalg(), Fuse(), OutlineKernels(), OrderKernels())


def apply(text: str, *passes: Any) -> ModuleOp:
    module = parse_module(text)
    for each in passes:
        each.apply(module, PassContext())
    return module


def functions(module: ModuleOp) -> list[func.FuncOp]:
    return [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]


def kernels(module: ModuleOp) -> list[func.FuncOp]:
    return [f for f in functions(module) if KERNEL_ATTRIBUTE in f.attributes]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_keep_their_meaning(name: str) -> None:
    text, inputs = PROGRAMS[name]
    expected = run(apply(text, *TO_TENSORS), "step", inputs)
    module = apply(text, *TO_TENSORS, *TO_KERNELS)
    parse_module(print_module(module))
    found = run(module, "step", inputs)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6)


def test_a_training_step_is_few_kernels() -> None:
    module = apply(MLP, *TO_TENSORS, *TO_KERNELS)
    names = sorted(k.sym_name.data for k in kernels(module))
    assert [n.rpartition("_")[0] for n in names] == ["contraction"] * 5 + ["rows"] * 2, "2 layers, softmax and loss, 3 products, 1 bias"
    assert not [op for f in functions(module) if f not in kernels(module) for op in f.walk() if isinstance(op, linalg.GenericOp)]


def test_kernels_inside_loops_and_equal_ones_once() -> None:
    module = apply(RNN, *TO_TENSORS, *TO_KERNELS)
    (entry,) = [f for f in functions(module) if f not in kernels(module)]
    loops = [op for op in entry.walk() if isinstance(op, scf.ForOp)]
    assert len(loops) == 2 and all(any(isinstance(op, func.CallOp) for op in loop.body.block.ops) for loop in loops)
    keys = [print_module(k).split("(", 1)[1] for k in kernels(module)]
    assert len(set(keys)) == len(keys)


def test_every_kernel_is_the_group_that_its_attribute_names() -> None:
    for text, _ in PROGRAMS.values():
        for kernel in kernels(apply(text, *TO_TENSORS, *TO_KERNELS)):
            group = groups.group_of_kernel(kernel)
            assert group is not None and group.kind == kernel.attributes[KERNEL_ATTRIBUTE].kind  # type: ignore[attr-defined]


TWO_SIZES = """
func.func @f(%x: tensor<?x4xf32, ["b", ""]>, %y: tensor<?x4xf32, ["t", ""]>) -> (tensor<?x4xf32, ["b", ""]>, tensor<?x4xf32, ["t", ""]>) {
  %a = nd.exp %x : tensor<?x4xf32, ["b", ""]>
  %b = nd.exp %y : tensor<?x4xf32, ["t", ""]>
  return %a, %b : tensor<?x4xf32, ["b", ""]>, tensor<?x4xf32, ["t", ""]>
}
"""


def test_kernels_over_different_size_names_are_one() -> None:
    module = apply(TWO_SIZES, *TO_KERNELS)
    assert len(kernels(module)) == 1
    x, y = normal(3, 4), normal(5, 4)
    a, b = run(module, "f", (x, y))
    np.testing.assert_array_equal(a.shape + b.shape, (3, 4, 5, 4))
    np.testing.assert_allclose(b, np.exp(y), rtol=1e-6)


def scaled(constants: list[float]) -> str:
    lines = []
    for i, c in enumerate(constants):
        lines.append(f"%c{i} = nd.constant splat({c!r} : f32) : tensor<4xf32>\n  %v{i} = nd.mul %x, %c{i} : tensor<4xf32>")
    results = ", ".join(f"%v{i}" for i in range(len(constants)))
    types = ", ".join(["tensor<4xf32>"] * len(constants))
    return f"func.func @f(%x: tensor<4xf32>) -> ({types}) {{\n  " + "\n  ".join(lines) + f"\n  return {results} : {types}\n}}"


def test_float_constants_do_not_keep_kernels_apart_but_signs_of_zero_do() -> None:
    assert len(kernels(apply(scaled([0.5, 0.25, 3.0]), *TO_KERNELS))) == 1
    module = apply(scaled([0.0, -0.0]), *TO_KERNELS)
    assert len(kernels(module)) == 2
    a, b = run(module, "f", (np.ones(4, np.float32),))
    assert not np.signbit(a).any() and np.signbit(b).all()


PREDICATE = """
func.func @f(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %m = nd.compare gt, %x, %y : tensor<8x8xf32>
  %a = nd.select %m, %x, %y : tensor<8x8xf32>
  %d = nd.dot_general %a, %w contract [1] x [0] : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %b = nd.select %m, %d, %y : tensor<8x8xf32>
  return %a, %b : tensor<8x8xf32>, tensor<8x8xf32>
}
"""


def test_predicates_are_recomputed_not_stored() -> None:
    module = apply(PREDICATE, *TO_KERNELS)
    types = [str(a.type) for k in kernels(module) for a in k.body.block.args]
    assert len(kernels(module)) == 2 and not any("i1" in t for t in types)
    assert sum(isinstance(op, linalg.GenericOp) and str(op.results[0].type) == "tensor<8x8xi1>" for op in module.walk()) == 2


def test_a_predicate_that_is_returned_is_stored_once() -> None:
    text = PREDICATE.replace("-> (tensor<8x8xf32>, tensor<8x8xf32>) {", "-> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xi1>) {")
    text = text.replace(
        "return %a, %b : tensor<8x8xf32>, tensor<8x8xf32>", "return %a, %b, %m : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xi1>"
    )
    module = apply(text, *TO_KERNELS)
    x, y, w = normal(8, 8), normal(8, 7)[:, :1].repeat(8, 1), normal(8, 8)
    np.testing.assert_array_equal(run(module, "f", (x, y, w))[2], x > y)


CYCLE = """
func.func @f(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = nd.exp %x : tensor<8x8xf32>
  %d = nd.dot_general %a, %w contract [1] x [0] : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %s = nd.add %a, %d : tensor<8x8xf32>
  return %s : tensor<8x8xf32>
}
"""
SLICED = """
func.func @f(%x: tensor<8x8xf32>) -> tensor<8xf32> {
  %i = arith.constant 3 : index
  %a = nd.exp %x : tensor<8x8xf32>
  %r = nd.index_at %a[%i] dim 0 : tensor<8x8xf32> -> tensor<8xf32>
  %t = nd.reduce_sum %a dims [1] : tensor<8x8xf32> -> tensor<8xf32>
  %s = nd.add %t, %r : tensor<8xf32>
  return %s : tensor<8xf32>
}
"""


@pytest.mark.parametrize(("text", "shape"), [(CYCLE, [(8, 8), (8, 8)]), (SLICED, [(8, 8)])])
def test_no_group_is_left_and_entered_again(text: str, shape: list[tuple[int, int]]) -> None:
    """%s reads %a and what another kernel, or a slice, makes of %a."""
    inputs = [normal(*s) for s in shape]
    expected = run(parse_module(text), "f", inputs)[0]
    np.testing.assert_allclose(run(apply(text, *TO_KERNELS), "f", inputs)[0], expected, rtol=1e-5)
    marked = apply(text, ConvertNdToLinalg(), Fuse())
    for op in marked.walk():
        if isinstance(op, linalg.GenericOp):
            op.attributes["gradir.group"] = parse_module("builtin.module attributes {g = 0 : i64} {}").attributes["g"]
    with pytest.raises(GradirError) as caught:
        OutlineKernels().apply(marked, PassContext())
    assert caught.value.code == "GR021"


READ_LATE = """
func.func @f(%s: tensor<4x8xf32>, %x: tensor<8xf32>, %i: index) -> (tensor<4x8xf32>, tensor<8xf32>) {
  %n = nd.update_at %x into %s[%i] dim 0 : tensor<8xf32> -> tensor<4x8xf32>
  %r = nd.index_at %s[%i] dim 0 : tensor<4x8xf32> -> tensor<8xf32>
  %e = nd.exp %r : tensor<8xf32>
  return %n, %e : tensor<4x8xf32>, tensor<8xf32>
}
"""


def test_readers_move_before_the_op_that_overwrites() -> None:
    module = apply(READ_LATE, *TO_KERNELS)
    (entry,) = [f for f in functions(module) if f not in kernels(module)]
    ops = [type(op) for op in entry.body.block.ops]
    assert ops.index(func.CallOp) < ops.index(tensor.InsertSliceOp)


def test_a_reader_that_needs_the_new_value_stays_behind() -> None:
    text = READ_LATE.replace(
        "%e = nd.exp %r : tensor<8xf32>",
        "%k = nd.index_at %n[%i] dim 0 : tensor<4x8xf32> -> tensor<8xf32>\n  %e = nd.add %r, %k : tensor<8xf32>",
    )
    module = apply(text, *TO_KERNELS)
    s, x = normal(4, 8), normal(8)
    n, e = run(module, "f", (s, x, np.int64(2)))
    np.testing.assert_array_equal(e, s[2] + x)
    np.testing.assert_array_equal(n[2], x)


WIDE = """
func.func @f(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) {{
  {products}
  {sums}
  return %s0, %s1, %s2, %s3 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
}}
"""


def test_the_order_keeps_few_bytes_alive() -> None:
    """Four products, then their sums: in the text all products are alive at once; in the new order one."""
    product = "%p{0} = nd.dot_general %x, %w contract [{1}] x [{2}] : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>"
    products = "\n  ".join(product.format(i, i % 2, i // 2) for i in range(4))
    sums = "\n  ".join(f"%s{i} = nd.reduce_sum %p{i} dims [0, 1] : tensor<64x64xf32> -> tensor<f32>" for i in range(4))
    text = WIDE.format(products=products, sums=sums)

    def calls(module: ModuleOp) -> str:
        (entry,) = [f for f in functions(module) if f not in kernels(module)]
        return "".join(op.callee.string_value()[0] for op in entry.body.block.ops if isinstance(op, func.CallOp))

    assert calls(apply(text, *TO_KERNELS[:-1])) == "ccccrrrr"
    assert calls(apply(text, *TO_KERNELS)) == "crcrcrcr"


def chain(length: int) -> str:
    ops = [f"%v{i + 1} = nd.{'exp' if i % 3 else 'neg'} %v{i} : tensor<8xf32>" for i in range(length)]
    return "func.func @f(%v0: tensor<8xf32>) -> tensor<8xf32> {\n  " + "\n  ".join(ops) + f"\n  return %v{length} : tensor<8xf32>\n}}"


def diamonds(length: int) -> str:
    """Each value is also read two ops later, which gives every merge a path to search."""
    ops = ["%v1 = nd.neg %v0 : tensor<8xf32>"]
    ops += [f"%v{i + 1} = nd.add %v{i}, %v{i - 1} : tensor<8xf32>" for i in range(1, length)]
    return "func.func @f(%v0: tensor<8xf32>) -> tensor<8xf32> {\n  " + "\n  ".join(ops) + f"\n  return %v{length} : tensor<8xf32>\n}}"


@pytest.mark.parametrize("program", [chain, diamonds])
def test_the_passes_are_linear_in_program_size(program: Callable[[int], str]) -> None:
    """Python calls of all four passes, for whole groups."""

    def calls(length: int) -> int:
        module, count = parse_module(program(length)), 0

        def counting(_: Any, event: str, __: Any) -> None:
            nonlocal count
            count += event == "call"

        sys.setprofile(counting)
        try:
            for each in TO_KERNELS:
                each.apply(module, PassContext())
        finally:
            sys.setprofile(None)
        return count

    calls(groups.MAX_OPS)  # fills the tables of interned attributes
    small, large = calls(4 * groups.MAX_OPS), calls(16 * groups.MAX_OPS)
    assert large <= 4.2 * small


def test_dependences_see_regions_slices_and_overwriting() -> None:
    module = apply(RNN, *TO_TENSORS, ConvertNdToLinalg())
    (entry,) = functions(module)
    graph = dependences(entry.body.block)
    loops = [op for op in graph.ops if isinstance(op, scf.ForOp)]
    assert loops[1] in graph.users[loops[0]]
    inner = dependences(loops[0].body.block)
    writers = [op for op in inner.ops if isinstance(op, tensor.InsertSliceOp)]
    assert writers and all(isinstance(op, Operation) for op in inner.after(inner.ops[0]))
