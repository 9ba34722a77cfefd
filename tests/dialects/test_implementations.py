"""The operator library's table: what is chosen where, pinned choices, rows of plugins, errors; every implementation gives the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gradir.dialects import nd
from gradir.dialects.nd import implementations as ours
from gradir.dialects.nd.base import Sample
from gradir.dialects.target.implementations import TABLE, Implementation, implement, library_versions, rows_of
from gradir.driver.compile import compile_module
from gradir.errors import GradirError
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, print_module
from gradir.lowering.nd_expand import NdExpand
from gradir.lowering.set_target import SetTarget
from gradir.reference import run
from gradir.runtime.library import lapack
from tests.cpu.batches import differences, forward

BIG = "func.func @f(%a: tensor<96x96xf32>) -> tensor<96x96xf32> {{\n  %0 = nd.cholesky %a lower{} : tensor<96x96xf32> -> tensor<96x96xf32>\n  return %0 : tensor<96x96xf32>\n}}\n"


needs_openblas = pytest.mark.skipif(not ours.has_openblas(), reason="no scipy-openblas32")


def expanded(text: str, target: str = "cpu") -> str:
    module = parse_module(text)
    SetTarget(target=target).apply(module, PassContext())
    NdExpand().apply(module, PassContext())
    return print_module(module)


def pinned(sample: Sample, name: str) -> Sample:
    text = re.sub(r"(= nd\.(?:cholesky|triangular_solve|lu)[^:\n]*) : ", rf'\1 {{gradir.implementation = "{name}"}} : ', sample.text)
    return Sample(sample.name, text, sample.inputs)


@pytest.fixture
def table() -> Iterator[None]:
    saved = {op: list(rows) for op, rows in TABLE.items()}
    yield
    TABLE.clear()
    TABLE.update(saved)


@needs_openblas
def test_size_and_target_decide() -> None:
    assert "nd.custom_call @lapack.potrf(%a) {config = {lower = true}}" in expanded(BIG.format(""))
    assert "nd.cholesky" in expanded(BIG.format("").replace("96", "8"))
    assert "nd.cholesky" in expanded(BIG.format(""), "cuda")


@needs_openblas
def test_a_pinned_choice_wins() -> None:
    assert "nd.cholesky" in expanded(BIG.format(' {gradir.implementation = "loops"}'))
    small = BIG.format(' {gradir.implementation = "lapack"}').replace("96", "8")
    assert "lapack.potrf" in expanded(small)


@needs_openblas
def test_without_the_package_our_loops_take_over(monkeypatch: pytest.MonkeyPatch) -> None:
    before = library_versions(BIG.format(""))
    monkeypatch.setattr(ours, "has_openblas", lambda: False)
    assert "nd.cholesky" in expanded(BIG.format(""))
    assert library_versions(BIG.format("")) != before  # another program for the cache
    with pytest.raises(GradirError) as caught:
        expanded(BIG.format(' {gradir.implementation = "lapack"}'))
    assert caught.value.code == "OP053" and "gradir[lapack]" in caught.value.expected


@pytest.mark.parametrize("name", ["loops", pytest.param("lapack", marks=needs_openblas)])
@pytest.mark.parametrize("op", [nd.CholeskyOp, nd.TriangularSolveOp, nd.LuOp], ids=lambda op: op.name)
def test_every_implementation_gives_the_same(op: type[nd.NdOp], name: str) -> None:
    batch = forward([pinned(sample, name) for sample in op.samples() if "complex" not in sample.name])
    assert differences(batch, batch.compiled()) == []


@pytest.mark.parametrize("op", list(nd.FAMILIES["linalg"]), ids=lambda op: op.name)
def test_numpy_stands_in_for_the_package(op: type[nd.NdOp], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lapack, "openblas", lambda: None)
    monkeypatch.setattr(ours, "has_openblas", lambda: True)  # compiled where it is, run where it is not
    batch = forward([pinned(sample, "lapack") for sample in op.samples()])
    assert differences(batch, batch.compiled()) == []


@pytest.mark.parametrize("package", [pytest.param(True, marks=needs_openblas), False], ids=["openblas", "numpy"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "complex<f64>"])
def test_packed_reflections(dtype: str, package: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What JAX calls for `qr`: geqrf, then orgqr."""
    if not package:
        monkeypatch.setattr(lapack, "openblas", lambda: None)
    a, t = f"tensor<2x4x3x{dtype}>", f"tensor<2x3x{dtype}>"
    body = f"  %p, %t = nd.custom_call @lapack.geqrf(%a) : ({a}) -> ({a}, {t})\n  %q = nd.custom_call @lapack.orgqr(%p, %t) : ({a}, {t}) -> {a}\n"
    text = f"func.func @f(%a: {a}) -> ({a}, {a}) {{\n{body}  return %p, %q : {a}, {a}\n}}\n"
    x = np.random.default_rng(2).standard_normal((2, 4, 3))
    given = (x + 1j * x[::-1]) if dtype.startswith("c") else x.astype(np.float32 if dtype == "f32" else np.float64)
    packed, q = compile_module(text, cache=False)["f"](given)
    np.testing.assert_allclose(q @ np.triu(packed[:, :3]), given, atol=1e-5)
    np.testing.assert_allclose(q.conj().swapaxes(-1, -2) @ q, np.broadcast_to(np.eye(3), (2, 3, 3)), atol=1e-5)
    for found, expected in zip(run(parse_module(text), "f", [given]), (packed, q)):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_plugin_adds_a_row(table: None) -> None:
    def expand(builder: Any, op: Any, operands: Any) -> Any:
        return [nd.emit(builder, nd.AddOp.make(operands[0], operands[0]))]

    implement(Implementation("nd.cholesky", "mine", "user", "cpu", frozenset({"f32"}), lambda op: "", expand, lambda op: 1))
    assert "nd.add" in expanded(BIG.format(""))
    assert "nd.add" not in expanded(BIG.format("").replace("f32", "f64"))
    x = np.ones((96, 96), np.float32)
    np.testing.assert_array_equal(compile_module(BIG.format(""), cache=False)["f"](x), x + x)
    implement(Implementation("nd.cholesky", "mine", "user", "cpu", frozenset({"f32"}), lambda op: "not today", expand, lambda op: 1))
    assert "nd.add" not in expanded(BIG.format(""))
    assert [row.name for row in rows_of("nd.cholesky")] == ["loops", "lapack", "mine"]


def test_an_op_that_only_a_library_has_names_the_target() -> None:
    text = "func.func @f(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {\n  %q, %r = nd.qr %a : tensor<4x4xf32> -> tensor<4x4xf32>, tensor<4x4xf32>\n  return %q : tensor<4x4xf32>\n}\n"
    with pytest.raises(GradirError) as caught:
        expanded(text, "cuda")
    assert caught.value.code == "OP052" and caught.value.found.startswith("cuda") and "lapack (it is for cpu)" in caught.value.expected


def test_an_unknown_choice_lists_the_rows() -> None:
    with pytest.raises(GradirError) as caught:
        expanded(BIG.format(' {gradir.implementation = "mkl"}'))
    assert caught.value.code == "OP053" and "loops" in caught.value.expected and caught.value.found == "mkl"
    with pytest.raises(GradirError) as caught:
        expanded(BIG.format(' {gradir.implementation = "loops"}').replace("f32", "complex<f32>"))
    assert "it takes f32, f64" in caught.value.expected
