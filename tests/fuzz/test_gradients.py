"""Random programs about derivatives: valid, deep and varied; planted faults are found; fixed seeds are clean."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gradir.autodiff import registry
from gradir.dialects import nd
from gradir.ir.text import parse_module
from gradir.tools.fuzz import campaign
from gradir.tools.fuzz.gradients.program import smooth_program
from gradir.tools.fuzz.gradients.questions import QUESTIONS
from gradir.tools.fuzz.oracles import ask
from gradir.tools.fuzz.refusal import RefusedError

FIRST = 40_000

PRODUCT = """func.func @main(%x: tensor<3xf64>, %n: tensor<i64>) -> tensor<3xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %x) -> (tensor<3xf64>) {
    %0 = nd.sin %s : tensor<3xf64>
    %1 = nd.mul %0, %x : tensor<3xf64>
    scf.yield %1 : tensor<3xf64>
  }
  return %r : tensor<3xf64>
}
"""
KINK = """func.func @main(%x: tensor<f64>) -> tensor<f64> {
  %0 = nd.sub %x, %x : tensor<f64>
  %1 = nd.mul %x, %x : tensor<f64>
  %2 = nd.add %0, %1 : tensor<f64>
  %s = nd.constant splat(1000000.0 : f64) : tensor<f64>
  %3 = nd.mul %2, %s : tensor<f64>
  %4 = nd.floor %3 : tensor<f64>
  return %4 : tensor<f64>
}
"""


def show(tally: campaign.Tally, seconds: float) -> None:
    """No progress in tests."""


def deepest(text: str) -> int:
    """How deep the blocks of a program are nested."""
    depth = most = 0
    for line in text.splitlines():
        depth -= line.strip().startswith("}")
        depth += line.endswith("{")
        most = max(most, depth)
    return most


def test_programs_are_valid_repeatable_deep_and_varied() -> None:
    texts = [smooth_program(seed) for seed in range(24)]
    for text in texts:
        parse_module(text)
    assert smooth_program(5) == texts[5]
    whole = "\n".join(texts)
    control = ("scf.for", "scf.while", "scf.if", "scf.index_switch", "func.call", "gradir.residuals")
    requests = ("ad.checkpoint", "ad.grad", "ad.jvp", "ad.batch", "ad.custom_vjp", "ad.custom_jvp")
    for part in (*control, *requests, "?x", "tensor<i64>", "nd.index_at", "nd.gather", "nd.argmax", "nd.dynamic_slice"):
        assert part in whole, part
    assert max(map(deepest, texts)) >= 6 and sum(deepest(text) >= 5 for text in texts) >= 5
    assert len(set(re.findall(r"nd\.\w+", whole))) > 50


@pytest.mark.parametrize("question", QUESTIONS)
def test_right_answers(question: str) -> None:
    assert ask(question, PRODUCT, 3) is None


@pytest.mark.parametrize("question", ["derivatives", "second-order"])
def test_a_wrong_rule_is_a_find(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that is wrong by one part in a thousand, in both modes: the forward mode is made of it."""
    registry.load_rules()
    monkeypatch.setitem(registry.VJP, nd.SinOp, lambda t, op, ct: (t.mul(ct, t.scale(t.unary(nd.CosOp, op.operand), 1.001)),))
    assert "by central differences" in (ask(question, PRODUCT, 3) or "")


def test_modes_that_differ_are_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.load_rules()
    monkeypatch.setitem(registry.JVP, nd.SinOp, lambda t, op, given: [given[0]])
    assert "dot product" in (ask("derivatives", PRODUCT, 3) or "")


def test_a_refusal_is_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.load_rules()
    monkeypatch.delitem(registry.VJP, nd.SinOp)
    assert "AD001" in (ask("derivatives", PRODUCT, 3) or "")


def test_jumps_are_not_compared() -> None:
    with pytest.raises(RefusedError, match="not smooth"):
        ask("derivatives", KINK, 0)


def fixed(first: int, count: int, folder: Path) -> Any:
    tally = campaign.run(500, first, folder, show, seeds=count, reduce_for=5, gradients=True)
    assert tally.last == first + count - 1
    assert not tally.finds, "\n\n".join(path.read_text() for path in tally.finds)
    return tally


def test_fixed_seeds_are_clean(tmp_path: Path) -> None:
    """What `make fuzz-grad` does, on seeds that never change."""
    tally = fixed(FIRST, 6, tmp_path)
    assert set(tally.asked) == set(QUESTIONS) and sum(tally.refused.values()) <= 2


@pytest.mark.full
@pytest.mark.parametrize("part", range(20))
def test_many_seeds_are_clean(tmp_path: Path, part: int) -> None:
    fixed(FIRST + 1000 + part * 40, 40, tmp_path)


def test_an_assertion_of_the_program_that_does_not_hold_is_no_find() -> None:
    text = """func.func @main(%x: tensor<f64>) -> tensor<f64> {
  %0 = nd.compare gt, %x, %x : tensor<f64>
  nd.assert %0, "greater than itself" : tensor<i1>
  func.return %x : tensor<f64>
}
"""
    for question in QUESTIONS.values():
        with pytest.raises(RefusedError, match="greater than itself"):
            question(text, 1)
