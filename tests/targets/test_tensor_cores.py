"""Products on tensor cores: their meaning in the evaluator, the PTX that they become, what is found when they are made wrong."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradir.driver.emulate import evaluate_as_ptx
from gradir.errors import GradirError
from gradir.ir.text import parse_module, print_module
from gradir.reference import run
from gradir.targets.nvptx import assemble, to_ptx
from tests.targets.assembler import needs_ptxas
from tests.targets.mma_kernels import product_kernel
from tests.upstream.roundtrip import upstream

Array = np.ndarray[Any, Any]
FORMS = [
    ("bf16", "f32", 16, False),
    ("f16", "f32", 16, False),
    ("f16", "f32", 16, True),
    ("f32", "f32", 8, False),
    ("i8", "i32", 32, False),
]
DTYPES = {"bf16": np.dtype(ml_dtypes.bfloat16), "f16": np.dtype(np.float16), "f32": np.dtype(np.float32), "i8": np.dtype(np.int8)}


def inputs(element: str, depth: int, transposed: bool) -> tuple[Array, Array, Array]:
    """Whole numbers, so that every order of sums is exact; and the product."""
    random = np.random.default_rng(depth)
    a, b = random.integers(-9, 9, (16, depth)), random.integers(-9, 9, (depth, 8) if transposed else (8, depth))
    return a.astype(DTYPES[element]), b.astype(DTYPES[element]), a @ (b if transposed else b.T)


@pytest.mark.parametrize(("element", "sums", "depth", "transposed"), FORMS)
def test_fragments_in_the_evaluator_and_as_ptx(element: str, sums: str, depth: int, transposed: bool) -> None:
    module = parse_module(product_kernel(element, sums, depth, transposed=transposed))
    a, b, want = inputs(element, depth, transposed)
    (found,) = run(module, "f", [a, b], result_shapes=[(16, 8)])
    np.testing.assert_array_equal(found, want)
    (emulated,) = evaluate_as_ptx(module, "f", [a, b])
    np.testing.assert_array_equal(emulated, want)


@pytest.mark.parametrize(("old", "new", "code"), [
    ("gpu.barrier", "", {"OP101", "OP107"}),  # whichever thread runs first
    ("nvgpu.device_async_wait %g {numGroups = 0 : i32}", "", {"OP101"}),
    ("{numGroups = 0 : i32}", "{numGroups = 1 : i32}", {"OP101"}),
    ("%half = arith.muli %odd, %width", "%half = arith.muli %odd, %two", {"OP102"}),
])  # fmt: skip
def test_mistakes_are_found(old: str, new: str, code: set[str]) -> None:
    text = product_kernel("bf16", "f32", 16)
    assert text.count(old) == 1
    a, b, _ = inputs("bf16", 16, False)
    with pytest.raises(GradirError) as caught:
        run(parse_module(text.replace(old, new)), "f", [a, b], result_shapes=[(16, 8)])
    assert caught.value.code in code, caught.value


@needs_ptxas
def test_they_assemble() -> None:
    for element, sums, depth, transposed in FORMS:
        ptx = to_ptx(parse_module(product_kernel(element, sums, depth, transposed=transposed)))
        assert "mma.sync.aligned.m16n8k" in ptx and ".extern .shared" in ptx
        _, (report,) = assemble(ptx, "sm_80")
        assert report.spills == 0


@pytest.mark.parametrize("element", ["bf16", "f32", "i8"])
def test_upstream_reads_them_and_back(element: str) -> None:
    form = next(f for f in FORMS if f[0] == element)
    text = print_module(parse_module(product_kernel(*form[:3])))
    assert print_module(parse_module(text)) == text
    parse_module(upstream(text))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("numTiles = 4 : i32", "numTiles = 3 : i32", "expected 1, 2 or 4, found 3"),
        ("mmaShape = [16, 8, 16]", "mmaShape = [16, 8, 4]", "nvgpu.mma.sync: mmaShape"),
        ("mmaShape = [16, 8, 16]", "mmaShape = [16, 8, 8]", "have shapes"),
        ("], 8, %chunk", "], 3, %chunk", "expected 4, 8 or 16 bytes, found 6"),
        ("], 8, %chunk", "], 4, %chunk", "bypassL1 takes copies of 16 bytes, found 8"),
    ],
)
def test_invalid_ops(old: str, new: str, message: str) -> None:
    text = product_kernel("bf16", "f32", 16)
    assert old in text
    with pytest.raises(Exception, match="nvgpu") as caught:
        parse_module(text.replace(old, new)).verify()
    assert message in str(caught.value)
