"""Random IR: the generator reaches every op, the oracles notice planted bugs, a find is reduced and can be shown again, fixed seeds are clean."""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradir.dialects import nd
from gradir.errors import GradirError
from gradir.ir.text import parse_module
from gradir.tools.fuzz import __main__ as command, campaign, damage_ops, damage_text, oracles
from gradir.tools.fuzz.oracles import ask
from gradir.tools.fuzz.programs import random_program
from gradir.tools.fuzz.refusal import RefusedError
from gradir.tools.fuzz.templates import ops, templates_of, unusable
from tests.fuzz.planted import register

ADD = """func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = nd.add %x, %y : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
"""
FIRST, COUNT = 20_000, 40
"""The sample of `make test`: as many seeds as take 20 s on two cores."""


def show(tally: campaign.Tally, seconds: float) -> None:
    """No progress in tests."""


# -- programs


def test_every_op_takes_part_or_says_why() -> None:
    used = {name for name in ops() if templates_of(name)}
    assert {kind.name for kind in nd.Nd.operations} == used | set(unusable())
    assert not used & set(unusable())
    assert all(unusable().values())
    assert len(used) >= 100 and len(unusable()) <= 8, unusable()


def test_programs_are_valid_repeatable_and_varied() -> None:
    texts = [random_program(seed) for seed in range(40)]
    for text in texts:
        parse_module(text)
    assert texts[7] == random_program(7)
    assert len(set(texts)) == 40
    whole = "\n".join(texts)
    for part in ("scf.if", "scf.for", "scf.while", "scf.index_switch", "func.call", "bf16", "f16", "ui8", "i1>", "x0x", "?x"):
        assert part in whole, part
    names = Counter(re.findall(r"nd\.\w+", whole))
    assert len(names) > 60


@pytest.mark.parametrize("op", ["nd.softmax", "nd.sort", "nd.conv_general"])
def test_programs_of_one_op(op: str) -> None:
    assert any(op in random_program(seed, only=[op]) for seed in range(5))


# -- damage


def test_damage_is_repeatable_and_mostly_wrong() -> None:
    text, other = random_program(1), random_program(2)
    for damage in (damage_text.damage, damage_ops.damage):
        made = [damage(text, np.random.default_rng(seed), [other]) for seed in range(30)]
        assert made == [damage(text, np.random.default_rng(seed), [other]) for seed in range(30)]
        wrong = 0
        for each in made:
            try:
                parse_module(each)
            except GradirError as error:
                assert error.code in ("GR010", "GR011")
                wrong += 1
        assert wrong > 15


# -- oracles notice


def test_right_answers() -> None:
    for name in oracles.ORACLES:
        assert ask(name, ADD.replace("f32", "f64"), 0) is None


def test_wrong_text_is_refused_not_a_find() -> None:
    with pytest.raises(RefusedError, match="GR010"):
        ask("damaged", "func.func @f(", 0)
    with pytest.raises(RefusedError, match="GR011"):
        ask("damaged", ADD.replace("%0 = nd.add %x, %y : tensor<2x3xf32>", '%0 = "nd.add"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>'), 0)


def test_an_exception_in_a_verifier_is_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: nd.AddOp) -> None:
        raise KeyError("lhs")

    monkeypatch.setattr(nd.AddOp, "verify_", broken)
    with pytest.raises(GradirError, match="crashed its own verifier"):
        parse_module(ADD)
    assert "crashed its own verifier" in (ask("damaged", ADD, 0) or "")


def test_a_pass_that_changes_values_is_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    name = register(monkeypatch)
    monkeypatch.setattr(oracles, "PIPELINES", (f"canonicalize,{name}",))
    complaint = ask("semantics", ADD, 0) or ""
    assert name in complaint and "differs" in complaint and "+-" in complaint


def test_a_pass_that_crashes_or_breaks_the_ir_is_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    name = register(monkeypatch)
    for fault, words in (("crash", "crashed: KeyError"), ("invalid", "operand")):
        monkeypatch.setattr(oracles, "PIPELINES", (f"{name}{{fault={fault}}}",))
        assert words in (ask("semantics", ADD, 0) or "")
    monkeypatch.setattr(oracles, "PIPELINES", (f"{name}{{fault=refuse}}",))
    with pytest.raises(RefusedError, match="GR020"):
        ask("semantics", ADD, 0)


def test_wrong_code_is_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    real = oracles.compile_module
    monkeypatch.setattr(oracles, "compile_module", lambda module, **options: real(ADD.replace("nd.add", "nd.mul"), **options))
    assert "result 0 of @main" in (ask("compiled", ADD, 0) or "")


def test_a_wrong_derivative_is_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    text = ADD.replace("f32", "f64").replace("nd.add", "nd.mul")
    real = oracles._with_vjp
    monkeypatch.setattr(
        oracles,
        "_with_vjp",
        lambda module, function, wrt: real(parse_module(text.replace("nd.mul", "nd.add")), function, wrt),
    )
    assert "central differences" in (ask("gradient", text, 0) or "")


def test_printed_text_that_reads_differently_is_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    real = oracles.print_module

    def swapped(module: Any, **flags: Any) -> str:
        text = real(module, **flags)
        return text.replace("%x, %y", "%y, %x") if flags else text

    monkeypatch.setattr(oracles, "print_module", swapped)
    assert "reads differently" in (ask("round-trip", ADD, 0) or "")


def test_no_answer_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = {"damaged": lambda text, seed: time.sleep(30), "semantics": lambda text, seed: time.sleep(30)}
    monkeypatch.setattr(oracles, "ORACLES", slow)
    assert "no answer within 1 s" in (ask("damaged", ADD, 0, seconds=1) or "")
    with pytest.raises(RefusedError, match="slow"):
        ask("semantics", ADD, 0, seconds=1)


def test_a_slow_pass_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    """The alarm rings inside of the session, which reports every exception of a pass."""
    name = register(monkeypatch)
    monkeypatch.setattr(oracles, "PIPELINES", (f"{name}{{fault=slow}}",))
    with pytest.raises(RefusedError, match="slow"):
        ask("semantics", ADD, 0, seconds=1)


# -- campaigns


def test_a_find_is_reduced_and_written_and_shown_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def planted(text: str, seed: int) -> str | None:
        parse_module(text)
        return "planted: a tensor of ui8" if "ui8" in text else None

    monkeypatch.setattr(oracles, "ORACLES", dict.fromkeys(oracles.ORACLES, planted))
    assert command.run(["--seconds=30", "--seed=0", "--count=40", f"--output={tmp_path}", "--reduce-for=20"]) == 1
    err = capsys.readouterr().err
    assert "1 finds" in err and "planted: a tensor of ui8" in err
    (path,) = tmp_path.glob("*.mlir")
    lines = path.read_text().splitlines()
    assert lines[0] == "// planted: a tensor of ui8"
    match = re.fullmatch(r"// seed (\d+); again: python -m gradir.tools.fuzz --oracle (\S+) --seed \1 (.*)", lines[1])
    assert match is not None and match[3] == str(path)
    assert len(lines) <= 10, "\n".join(lines)
    assert command.run(["--oracle", match[2], "--seed", match[1], str(path)]) == 1
    assert "planted" in capsys.readouterr().out


def test_a_process_that_dies_is_a_find_and_the_campaign_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deadly(text: str, seed: int) -> str | None:
        if seed == 3 and "func" in text:
            os.kill(os.getpid(), signal.SIGTERM)
        return None

    monkeypatch.setattr(oracles, "ORACLES", dict.fromkeys(oracles.ORACLES, deadly))
    tally = campaign.run(60, 0, tmp_path, show, seeds=6, reduce_for=2)
    assert tally.last == 5 and sum(tally.asked.values()) == 6
    (path,) = tally.finds
    assert path.read_text().startswith("// the process died: SIGTERM\n// seed 3;")


def test_list_of_ops(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(["--ops"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^nd\.add: \d+ samples$", out, re.M) and "nd.yield: skipped, a terminator" in out


def test_what_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert command.run([str(tmp_path / "none.mlir")]) == 2
    (tmp_path / "bad.mlir").write_text("func.func @f(")
    assert command.run([str(tmp_path / "bad.mlir")]) == 0
    assert "refused: GR010" in capsys.readouterr().out


@pytest.mark.parametrize("part", range(2))
def test_fixed_seeds_are_clean(tmp_path: Path, part: int) -> None:
    """What `make fuzz` does, on seeds that never change."""
    half = COUNT // 2
    tally = campaign.run(200, FIRST + part * half, tmp_path, show, seeds=half, reduce_for=5)
    assert tally.last == FIRST + (part + 1) * half - 1
    assert not tally.finds, "\n\n".join(path.read_text() for path in tally.finds)
    assert set(tally.asked) == set(campaign.SCHEDULE)
