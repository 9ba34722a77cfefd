"""Whole functions out and in again: control flow, calls, scalars, what JAX printed. XLA runs what was written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError
from gradir.frontends.python.program import Program
from gradir.frontends.stablehlo import import_text
from gradir.frontends.stablehlo.export import export_text
from gradir.ir.text import print_module
from gradir.reference import run
from gradir.tools.stablehlo_suite import suites_folder
from tests.frontends_stablehlo.jax_reference import inputs_of, needs_jax, run_with_jax

FOLDER = suites_folder()
PROGRAMS = sorted((FOLDER / "jax-programs").glob("*.mlir")) if FOLDER is not None else []
X = np.array([0.5, -1.0, 2.0], np.float32)


def collatz(n: gd.Array) -> gd.Array:
    def body(state: tuple[gd.Array, gd.Array]) -> tuple[gd.Array, gd.Array]:
        n, steps = state
        return gd.where(gd.fmod(n, 2) == 0, n // 2, 3 * n + 1), steps + 1

    return gd.while_loop(lambda s: s[0] != 1, body, (n, gd.asarray(np.int32(0))))[1]


def horner(x: gd.Array) -> gd.Array:
    return gd.fori_loop(1, 5, lambda i, s: s * x + gd.asarray(i).astype(np.float32), x)


def running(xs: gd.Array) -> tuple[gd.Array, gd.Array]:
    return gd.scan(lambda c, x: (c * 0.5 + x, c * x), gd.zeros(()), xs)


def chosen(x: gd.Array) -> gd.Array:
    inner = gd.cond(gd.sum(x) > 0, lambda y: gd.softmax(y), lambda y: -y, x)
    return gd.cond(gd.max(inner) > 0.5, lambda y: y + 1, lambda y: y * 2, inner)


def switched(k: gd.Array, x: gd.Array) -> gd.Array:
    return gd.switch(k, [gd.sin, gd.cos, lambda y: y * y, gd.exp], x)


CASES = {
    "while": (collatz, (np.int32(6),)),
    "for": (horner, (X,)),
    "scan": (running, (X,)),
    "if": (chosen, (X,)),
    "if the other way": (chosen, (-X,)),
    **{f"switch {k}": (switched, (np.int32(k), X)) for k in (-1, 0, 2, 3, 9)},
    "gradient through a scan": (gd.grad(lambda xs: gd.sum(running(xs)[1])), (X,)),
    "gradient through a loop": (gd.grad(lambda x: gd.sum(horner(x))), (X,)),
}


def lowered(name: str) -> tuple[Program, list[np.ndarray]]:
    function, arguments = CASES[name]
    text = print_module(gd.jit(lambda *args: function(*args)).lower(*arguments))
    (entry,) = gd.parse(text).functions
    return gd.parse(text.replace(f"@{entry}(", "@main(")), [np.asarray(a) for a in arguments]


@pytest.mark.parametrize("name", CASES)
def test_functions_come_back(name: str) -> None:
    module, inputs = lowered(name)
    wanted = gd.compile(module, target="reference")["main"].flat(*inputs)
    for found, value in zip(run(import_text(export_text(module)), "main", inputs), wanted, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-6)


@needs_jax
@pytest.mark.parametrize("name", CASES)
def test_xla_runs_what_was_written(name: str) -> None:
    module, inputs = lowered(name)
    wanted = gd.compile(module, target="reference")["main"].flat(*inputs)
    for found, value in zip(run_with_jax(export_text(module), inputs), wanted, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-5)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_what_jax_printed_comes_back(path: Path) -> None:
    text = path.read_text()
    module = import_text(text, path.name)
    again = import_text(export_text(module))
    inputs = inputs_of(text)
    for found, wanted in zip(run(again, "main", inputs), run(module, "main", inputs), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_while_whose_condition_computes_more_than_a_flag() -> None:
    text = """func.func @main(%x: tensor<i32>) -> tensor<i32> {
  %r = scf.while (%s = %x) : (tensor<i32>) -> tensor<i32> {
    %one = nd.constant splat(1 : i32) : tensor<i32>
    %next = nd.add %s, %one : tensor<i32>
    %limit = nd.constant splat(5 : i32) : tensor<i32>
    %less = nd.compare lt, %next, %limit : tensor<i32>
    %flag = tensor.extract %less[] : tensor<i1>
    scf.condition(%flag) %next : tensor<i32>
  } do {
  ^bb0(%t: tensor<i32>):
    %two = nd.constant splat(2 : i32) : tensor<i32>
    %u = nd.mul %t, %two : tensor<i32>
    scf.yield %u : tensor<i32>
  }
  return %r : tensor<i32>
}
"""
    module = gd.parse(text)
    for start in (0, 2, 7):
        (wanted,) = run(module, "main", [np.int32(start)])
        (found,) = run(import_text(export_text(module)), "main", [np.int32(start)])
        assert found == wanted


def test_names_and_privacy_of_functions_are_kept() -> None:
    text = (
        "func.func @gradir.relu(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %y = nd.relu %x : tensor<2xf32>\n"
        "  %z = func.call @inner(%y) : (tensor<2xf32>) -> tensor<2xf32>\n  return %z : tensor<2xf32>\n}\n"
        "func.func private @inner(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}\n"
    )
    written = export_text(gd.parse(text))
    assert "func.func public @gradir.relu(" in written
    assert "func.func private @gradir.relu_1(" in written  # the decomposition steps aside
    assert "func.func private @inner(" in written
    assert import_text(written).functions == ("gradir.relu",)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("%m = memref.alloc() : memref<2xf32>", "memref.alloc"),
        ("%c = arith.constant 1 : index\n  %b = arith.cmpi ult, %c, %c : index", "an unsigned comparison"),
    ],
)
def test_ops_of_other_levels_are_refused(body: str, reason: str) -> None:
    with pytest.raises(GradirError, match=reason) as caught:
        export_text(gd.parse(f"func.func @f() {{\n  {body}\n  return\n}}\n"))
    assert caught.value.code == "GR121"


@pytest.mark.parametrize("name", ["<lambda>", 'a "b" c', "1st", "a\\b"])
def test_names_that_are_no_words_are_quoted(name: str) -> None:
    """JAX calls the function of a lambda `<lambda>`."""
    spelled = name.replace("\\", "\\\\").replace('"', '\\"')
    text = (
        f'func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{\n  %y = func.call @"{spelled}"(%x) : (tensor<2xf32>) -> tensor<2xf32>\n'
        f'  return %y : tensor<2xf32>\n}}\nfunc.func @"{spelled}"(%x: tensor<2xf32>) -> tensor<2xf32> {{\n'
        "  %y = nd.relu %x : tensor<2xf32>\n  return %y : tensor<2xf32>\n}\n"
    )
    back = import_text(export_text(gd.parse(text)))
    assert back.functions == ("main", name)
    np.testing.assert_array_equal(run(back, "main", [np.array([-1, 2], np.float32)])[0], [0, 2])
