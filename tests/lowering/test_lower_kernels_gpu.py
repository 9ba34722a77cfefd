"""CUDA kernels at level 4: their meaning on the SIMT reference, the launches that a kernel becomes, races."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from gradir.dialects.upstream import gpu
from gradir.driver.lower import lower
from gradir.errors import GradirError
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, print_module
from gradir.lowering.lower_kernels import LowerKernels
from gradir.reference import run

RNG = np.random.default_rng(3)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def lowered(text: str) -> ModuleOp:
    """The module after `lower-kernels`, before `expand-math`."""
    module = lower(text, target="cuda", last="buffers")
    LowerKernels().apply(module, PassContext())
    return module


def kernels(module: ModuleOp) -> list[gpu.FuncOp]:
    return [op for op in module.walk() if isinstance(op, gpu.FuncOp)]


def check(text: str, *inputs: np.ndarray, tolerance: float = 1e-5) -> ModuleOp:
    """Lower `@f` for CUDA; its results on the SIMT reference are those of level 1."""
    want = run(parse_module(text), "f", list(inputs))
    module = lowered(text)
    got = run(module, "f", list(inputs), result_shapes=[w.shape for w in want])
    for expected, found in zip(want, got):
        np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=tolerance, atol=tolerance)
    return module


def function(arguments: str, result: str, body: str) -> str:
    return f"func.func @f({arguments}) -> {result} {{\n{body}\n}}"


def test_points_with_broadcast_and_transpose() -> None:
    text = function(
        "%x: tensor<20x33xf32>, %b: tensor<20xf32>",
        "tensor<33x20xf32>",
        """%t = nd.transpose %x perm [1, 0] : tensor<20x33xf32> -> tensor<33x20xf32>
  %w = nd.broadcast %b dims [1] : tensor<20xf32> -> tensor<33x20xf32>
  %s = nd.add %t, %w : tensor<33x20xf32>
  %r = nd.tanh %s : tensor<33x20xf32>
  return %r : tensor<33x20xf32>""",
    )
    assert len(kernels(check(text, floats(20, 33), floats(20)))) == 1


@pytest.mark.parametrize(
    ("shape", "threads", "reads"), [((5, 7), (8, 32), 1), ((3, 256), (32, 8), 2), ((2, 1100), (64, 4), 5)], ids=["short", "warp", "block"]
)
def test_rows_in_registers_are_read_once(shape: tuple[int, int], threads: tuple[int, int], reads: int) -> None:
    t = f"tensor<{shape[0]}x{shape[1]}xf32>"
    module = check(function(f"%x: {t}", t, f"%y = nd.softmax %x dim 1 : {t}\n return %y : {t}"), floats(*shape))
    (kernel,) = kernels(module)
    assert kernel.known_block_size is not None and tuple(kernel.known_block_size.get_values())[:2] == threads
    source = kernel.body.block.args[0]
    assert sum(use.operation.name in ("memref.load", "vector.load") for use in source.uses) == reads


def test_long_sums_of_a_lane_add_in_f64() -> None:
    text = function(
        "%x: tensor<1x70000xf32>",
        "tensor<1xf32>",
        "%y = nd.reduce_sum %x dims [1] : tensor<1x70000xf32> -> tensor<1xf32>\n return %y : tensor<1xf32>",
    )
    x = np.full((1, 70000), 1 + 2**-20, np.float32)
    module = check(text, x, tolerance=1e-7)
    assert any(op.name == "arith.extf" for op in module.walk())


@pytest.mark.parametrize(("size", "alone"), [(4096, True), (60000, False)])
def test_one_row_is_one_kernel_while_a_block_holds_it(size: int, alone: bool) -> None:
    t = f"tensor<{size}xf32>"
    module = lowered(function(f"%x: {t}", t, f"%y = nd.softmax %x dim 0 : {t}\n return %y : {t}"))
    assert (len(kernels(module)) == 1) == alone


def test_columns_and_what_follows_them() -> None:
    text = function(
        "%x: tensor<37x40xf32>, %g: tensor<37x40xf32>",
        "tensor<40xf32>",
        """%p = nd.mul %x, %g : tensor<37x40xf32>
  %s = nd.reduce_sum %p dims [0] : tensor<37x40xf32> -> tensor<40xf32>
  %r = nd.tanh %s : tensor<40xf32>
  return %r : tensor<40xf32>""",
    )
    check(text, floats(37, 40), floats(37, 40))


@pytest.mark.parametrize("kind", ["sum", "max", "prod"])
def test_totals(kind: str) -> None:
    t = "tensor<600xf32>"
    check(
        function(f"%x: {t}", "tensor<f32>", f"%y = nd.reduce_{kind} %x dims [0] : {t} -> tensor<f32>\n return %y : tensor<f32>"),
        floats(600) * 0.2 + 1,
    )


def test_loss_over_rows_with_its_mean() -> None:
    text = function(
        "%x: tensor<9x10xf32>, %y: tensor<9xi32>",
        "tensor<f32>",
        """%l = nd.cross_entropy %x, %y : tensor<9x10xf32>, tensor<9xi32> -> tensor<9xf32>
  %s = nd.reduce_sum %l dims [0] : tensor<9xf32> -> tensor<f32>
  return %s : tensor<f32>""",
    )
    check(text, floats(9, 10), RNG.integers(0, 10, 9).astype(np.int32))


@pytest.mark.parametrize(
    ("left", "right", "contract", "result"),
    [
        ("33x20", "20x35", "contract [1] x [0]", "33x35"),
        ("20x33", "20x35", "contract [0] x [0]", "33x35"),
        ("33x20", "35x20", "contract [1] x [1]", "33x35"),
        ("2x9x18", "2x18x7", "batch [0] x [0] contract [2] x [1]", "2x9x7"),
    ],
    ids=["nn", "tn", "nt", "batch"],
)
def test_contractions(left: str, right: str, contract: str, result: str) -> None:
    a, b, c = (f"tensor<{s}xf32>" for s in (left, right, result))
    text = function(
        f"%x: {a}, %w: {b}", c, f"%y = nd.dot_general %x, %w {contract} : {a}, {b} -> {c}\n %r = nd.relu %y : {c}\n return %r : {c}"
    )
    shapes = [tuple(map(int, s.split("x"))) for s in (left, right)]
    module = check(text, *(floats(*s) for s in shapes))
    assert any(op.name == "vector.outerproduct" for op in module.walk())


def test_convolution_is_a_contraction() -> None:
    text = function(
        "%x: tensor<2x6x6x3xf32>, %w: tensor<3x3x3x4xf32>",
        "tensor<2x6x6x4xf32>",
        """%y = nd.conv_general %x, %w padding [1, 1, 1, 1] : tensor<2x6x6x3xf32>, tensor<3x3x3x4xf32> -> tensor<2x6x6x4xf32>
  return %y : tensor<2x6x6x4xf32>""",
    )
    module = check(text, floats(2, 6, 6, 3), floats(3, 3, 3, 4))
    assert any(op.name == "vector.outerproduct" for op in module.walk())


def test_any_other_op_is_a_thread_per_point() -> None:
    text = function(
        "%x: tensor<4x9xf32>", "tensor<4xi64>", "%y = nd.argmax %x dim 1 : tensor<4x9xf32> -> tensor<4xi64>\n return %y : tensor<4xi64>"
    )
    check(text, floats(4, 9))


def test_a_scatter_is_shared_by_owners() -> None:
    text = function(
        "%x: tensor<4x3xf32>, %i: tensor<5xi32>, %u: tensor<5x3xf32>",
        "tensor<4x3xf32>",
        """%y = nd.scatter_add %x, %i, %u dim 0 : tensor<4x3xf32>, tensor<5xi32>, tensor<5x3xf32> -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>""",
    )
    (kernel,) = kernels(check(text, floats(4, 3), np.array([0, 3, 0, 9, 1], np.int32), floats(5, 3)))
    assert kernel.known_block_size is not None and list(kernel.known_block_size.get_values()) == [32, 1, 1]
    assert any(op.name == "gpu.thread_id" for op in kernel.walk())


MATMUL = function(
    "%x: tensor<8x20xf32>, %w: tensor<20x8xf32>",
    "tensor<8x8xf32>",
    "%y = nd.dot_general %x, %w contract [1] x [0] : tensor<8x20xf32>, tensor<20x8xf32> -> tensor<8x8xf32>\n return %y : tensor<8x8xf32>",
)


@pytest.mark.parametrize("which", [0, 1])
def test_a_dropped_barrier_is_found(which: int) -> None:
    module = lowered(MATMUL)
    barrier = [op for op in module.walk() if isinstance(op, gpu.BarrierOp)][which]
    barrier.detach()
    with pytest.raises(GradirError) as caught:
        run(module, "f", [floats(8, 20), floats(20, 8)])
    assert caught.value.code in ("OP101", "OP107"), caught.value  # poison or a race


def test_a_dropped_guard_is_found() -> None:
    module = lowered(MATMUL)
    for op in list(module.walk()):
        if op.name == "scf.if":
            block = op.parent
            assert block is not None
            for inner in list(op.regions[0].block.ops)[:-1]:
                inner.detach()
                block.insert_op_before(inner, op)
            op.detach()
    with pytest.raises(GradirError, match="out of bounds"):
        run(module, "f", [floats(8, 20), floats(20, 8)])


@pytest.mark.skipif(shutil.which("mlir-opt-22") is None, reason="upstream's mlir-opt is not installed")
def test_upstream_accepts_the_text() -> None:
    text = print_module(lower(MATMUL, target="cuda"))
    command = ["mlir-opt-22", "--verify-each", "--allow-unregistered-dialect"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
