"""The residual report: one exact row for each way to keep a value, bytes computed by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f64, i1
from xdsl.ir import Attribute

import gradir as gd
from gradir.autodiff.differentiate import Differentiate
from gradir.autodiff.reverse.report import FACT, ResidualReport, bytes_of
from gradir.dialects.types import tensor
from gradir.ir.passes import PassContext

T = "tensor<4x8xf32>"  # 128 bytes


def report(body: str, *, arguments: str = f"%x: {T}", more: str = "", request: str = "") -> ResidualReport:
    """What `ad.grad` of a function with this body keeps. Line 1 of the text is the function's head, so that rows can name lines."""
    names = ", ".join(a.split(":")[0] for a in arguments.split(", "))
    kinds = ", ".join(a.split(":")[1].strip() for a in arguments.split(", "))
    text = (
        f"func.func private @f({arguments}) -> tensor<f32> {{\n{body}\n"
        f"  %sum = nd.reduce_sum %out dims [0, 1] : {T} -> tensor<f32>\n  return %sum : tensor<f32>\n}}\n{more}"
        f"func.func @main({arguments}) -> {T} {{\n  %d = ad.grad @f({names}) wrt [0] : ({kinds}) -> {T}\n  return %d : {T}\n}}\n"
    )
    return gd.parse(text, "f.mlir").residual_report()


def rows(found: ResidualReport, function: str = "f.grad_0") -> list[tuple[str, str, object, str, str, bool]]:
    """name, op, bytes, where, why, again of each residual of one generated function."""
    kept = [k for k in found.functions if k.function == function]
    return [(r.name, r.op, r.bytes, r.where, r.why, r.again) for k in kept for r in k.residuals]


def test_straight_line() -> None:
    """Arguments are alive anyway; %b is redone from nothing but the argument, so its product with %x is not kept either."""
    found = report(f"  %s = nd.sin %x : {T}\n  %e = nd.exp %s : {T}\n  %out = nd.mul %e, %x : {T}")
    assert rows(found) == [
        ("e", "nd.exp", 128, "@f", "expensive: exp; read by the backward part of mul", False),
    ]
    (residual,) = found.functions[0].residuals
    assert (residual.type, residual.location) == (T, "f.mlir:3:8")


LOOP = """  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
"""


def test_loop_shares_one_stack_for_a_carried_value_and_its_successor() -> None:
    body = f"  %out = scf.for %i = %c0 to %c64 step %c1 iter_args(%h = %x) -> ({T}) {{\n    %e = nd.exp %h : {T}\n"
    body += f"    %m = nd.mul %e, %h : {T}\n    scf.yield %m : {T}\n  }}"
    assert rows(report(LOOP + body)) == [
        ("h", "block argument", 64 * 128, "@f > loop at f.mlir:5:10, 64 trips", "carried value of a loop, 64 entries", False),
        ("e", "nd.exp", 64 * 128, "@f > loop at f.mlir:5:10, 64 trips", "expensive: exp; read by the backward part of mul", False),
    ]


def test_nested_loops_are_counted_once() -> None:
    """The inner stack, 64 entries, is what the outer loop saves in each of its 5 trips."""
    inner = f"    %r = scf.for %j = %c0 to %c64 step %c1 iter_args(%h = %g) -> ({T}) {{\n      %m = nd.exp %h : {T}\n      scf.yield %m : {T}\n    }}\n"
    body = f"  %c5 = arith.constant 5 : index\n  %out = scf.for %i = %c0 to %c5 step %c1 iter_args(%g = %x) -> ({T}) {{\n{inner}    scf.yield %r : {T}\n  }}"
    where = "@f > loop at f.mlir:6:10, 5 trips > loop at f.mlir:7:10, 64 trips"
    assert rows(report(LOOP + body)) == [("m", "nd.exp", 5 * 64 * 128, where, "expensive: exp; read by the backward part of exp", False)]


def test_run_time_trips_make_a_formula() -> None:
    body = "  %n = tensor.extract %k[] : tensor<i64>\n  %u = arith.index_cast %n : i64 to index\n" + LOOP
    body += (
        f"  %out = scf.for %i = %c0 to %u step %c1 iter_args(%h = %x) -> ({T}) {{\n    %m = nd.sin %h : {T}\n    scf.yield %m : {T}\n  }}"
    )
    (row,) = rows(report(body, arguments=f"%x: {T}, %k: tensor<i64>"))
    assert row[2:4] == ("128*trips0", "@f > loop at f.mlir:7:10, trips0 trips")


def test_branches() -> None:
    """The two branches share the extra result of the `scf.if`."""
    branch = "    %a = nd.{0} %x : {1}\n    %b = nd.exp %a : {1}\n    scf.yield %b : {1}\n"
    body = "  %p = tensor.extract %k[] : tensor<i1>\n"
    body += f"  %out = scf.if %p -> ({T}) {{\n{branch.format('sin', T)}  }} else {{\n{branch.format('cos', T)}  }}"
    where, why = "@f > branch 0 of scf.if at f.mlir:3:10", "expensive: exp; read by the backward part of exp"
    assert rows(report(body, arguments=f"%x: {T}, %k: tensor<i1>")) == [("b", "nd.exp", 128, where, why, False)]


CALLEE = f"func.func private @g(%y: {T}) -> {T} {{\n  %a = nd.exp %y : {T}\n  %b = nd.exp %a : {T}\n  return %b : {T}\n}}\n"


def kept_by_callee(where: str, *, again: bool) -> list[tuple[str, str, object, str, str, bool]]:
    why = "expensive: exp; read by the backward part of exp"
    return [(name, "nd.exp", 128, where, why, again) for name in ("b", "a")]


def test_every_call_keeps_what_its_callee_returns() -> None:
    """Without `inline`, @g has two halves; each of the two calls keeps both values of the forward half."""
    calls = f"  %0 = func.call @g(%x) : ({T}) -> {T}\n  %1 = func.call @g(%0) : ({T}) -> {T}\n"
    module = gd.parse(
        CALLEE + f"func.func private @f(%x: {T}) -> {T} {{\n{calls}  return %1 : {T}\n}}\n"
        f"func.func @main(%x: {T}, %ct: {T}) -> ({T}, {T}) {{\n"
        f"  %y, %d = ad.vjp @f(%x, %ct) wrt [0] : ({T}, {T}) -> ({T}, {T})\n  return %y, %d : {T}, {T}\n}}\n",
        "f.mlir",
    )
    context = PassContext()
    Differentiate(report_residuals=True).apply(module, context)
    first, second = (kept_by_callee(f"@f > call at f.mlir:{line}:8 > @g", again=False) for line in (7, 8))
    assert sorted(rows(context.facts[FACT], "f.vjp_0")) == sorted(first + second)


def test_rules_of_ones_own_keep_what_they_return() -> None:
    found = gd.parse(
        f"func.func private @f(%x: {T}) -> {T} {{\n  %out = ad.custom_vjp @g forward @forward backward @backward(%x) : ({T}) -> {T}\n  return %out : {T}\n}}\n"
        f"func.func private @g(%y: {T}) -> {T} {{\n  return %y : {T}\n}}\n"
        f"func.func private @forward(%y: {T}) -> ({T}, {T}) {{\n  %0 = nd.exp %y : {T}\n  return %y, %0 : {T}, {T}\n}}\n"
        f"func.func private @backward(%r: {T}, %ct: {T}) -> {T} {{\n  %0 = nd.mul %r, %ct : {T}\n  return %0 : {T}\n}}\n"
        f"func.func @main(%x: {T}, %ct: {T}) -> ({T}, {T}) {{\n  %y, %d = ad.vjp @f(%x, %ct) wrt [0] : ({T}, {T}) -> ({T}, {T})\n  return %y, %d : {T}, {T}\n}}\n",
        "f.mlir",
    ).residual_report()
    where = "@f > call of @forward at f.mlir:2:10"
    assert rows(found, "f.vjp_0") == [("", "func.call", 128, where, "the rule @forward returns it for @backward", False)]


def test_checkpoint_keeps_nothing_and_makes_residuals_anew() -> None:
    found = report(f"  %out = ad.checkpoint @g(%x) : ({T}) -> {T}", more=CALLEE)
    assert rows(found) == kept_by_callee("checkpoint at f.mlir:2:10 > @g", again=True)
    assert (found.functions[0].total(again=False), found.functions[0].total(again=True)) == (0, 256)


def test_loops_that_end_by_their_data_are_run_again() -> None:
    body = f"""  %z = nd.constant splat(1.0e+3 : f32) : tensor<f32>
  %out = scf.while (%h = %x) : ({T}) -> {T} {{
    %s = nd.reduce_sum %h dims [0, 1] : {T} -> tensor<f32>
    %l = nd.compare lt, %s, %z : tensor<f32>
    %p = tensor.extract %l[] : tensor<i1>
    scf.condition(%p) %h : {T}
  }} do {{
  ^bb0(%h: {T}):
    %m = nd.exp %h : {T}
    scf.yield %m : {T}
  }}"""
    (row,) = [r for r in rows(report(body)) if r[5]]
    assert row == (
        "m",
        "nd.exp",
        "128*trips0",
        "loop at f.mlir:3:10, trips0 trips",
        "expensive: exp; read by the backward part of exp",
        True,
    )


def test_the_same_report_from_python_the_compiler_and_the_command_line(tmp_path: Path) -> None:
    x = np.zeros((4, 8), np.float32)
    compiled = gd.compile(gd.grad(lambda x: gd.sum(gd.exp(gd.sin(x)))), x, keep_ir=True)
    found = compiled.residual_report()
    assert found == compiled.report.residuals
    assert [r.bytes for f in found.functions for r in f.residuals] == [128]
    path = tmp_path / "f.mlir"
    path.write_text(compiled.ir())
    for flags in (["-p", "differentiate", "--report-residuals"], ["-p", "differentiate{report-residuals}"]):
        ran = subprocess.run([sys.executable, "-m", "gradir.tools.opt", str(path), *flags], capture_output=True, text=True, check=True)
        assert ran.stderr.splitlines()[1].split() == ["bytes", "value", "op", "type", "at", "leaves", "why"]
        assert ran.stderr.splitlines()[2].split()[:3] == ["128", "nd.exp", T]
        assert ran.stderr.endswith("  128 bytes from the forward part\n")
    assert str(gd.compile(lambda x: x + 1, x).residual_report()) == "no residuals\n"


def test_a_report_needs_the_pass(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "gradir.tools.opt", "-p", "cse", "--report-residuals", "-"],
        input="",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert "--report-residuals: the pipeline has no pass 'differentiate'" in ran.stderr


@pytest.mark.parametrize("element, width", [(f64, 8), (bf16, 2), (i1, 1)])
def test_bytes_of_elements(element: Attribute, width: int) -> None:
    assert bytes_of(tensor(element, (3, "b"))) == f"{3 * width}*b"
    assert bytes_of(tensor(element, (3, None))) is None
