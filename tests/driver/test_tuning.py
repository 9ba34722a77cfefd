"""The search of the tuner: candidates, a library, decisions and their files. Nothing looks at a clock: times are made up."""

from __future__ import annotations

import ctypes
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.dialects.kernel import ContractionAttr, ElementwiseAttr
from gradir.dialects.upstream.func import FuncOp
from gradir.driver.compile import compile_module
from gradir.driver.tuning import search as searching
from gradir.driver.tuning.alternatives import Subject
from gradir.driver.tuning.records import Choice, Records
from gradir.driver.tuning.search import search, significant
from gradir.driver.tuning.trials import Job, Outcome
from gradir.errors import GradirError
from gradir.lowering.groups import group_of_kernel
from gradir.lowering.library_contraction import call_library, library_form
from gradir.lowering.schedules import HEURISTICS
from gradir.lowering.schedules.candidates import MOST, candidates
from gradir.lowering.schedules.machine import Machine
from gradir.reference import run
from gradir.runtime.library.blas import set_threads
from tests.driver.test_explain import f32
from tests.driver.tuned_kernels import BLAS, DENSE, RECORD, by_form, dense, kernels, outlined, subject


@pytest.mark.parametrize(
    ("function", "args", "fields"),
    [
        (dense, DENSE, {"tile", "pack"}),
        (dense, (f32(256, 1024), f32(1024, 512), f32(512)), {"tile", "pack", "block"}),
        (lambda x: gd.tanh(x) * 2, (f32(64, 64),), {"tile"}),
        (lambda x: gd.softmax(x), (f32(64, 64),), {"tile"}),
    ],
)
def test_candidates_vary_the_fields_and_begin_with_the_heuristic(function: Any, args: Any, fields: set[str]) -> None:
    (kernel,) = kernels(outlined(function, *args))
    group = group_of_kernel(kernel)
    assert group is not None
    machine = Machine(threads=2)
    chosen = HEURISTICS[group.kind](group, machine)
    found = candidates(group, machine, chosen)
    assert found[0] == chosen and len(set(found)) == len(found) and 3 <= len(found) <= MOST
    same_kind = [schedule for schedule in found if type(schedule) is type(chosen)]
    for name in fields:
        assert len({schedule.field(name) for schedule in same_kind}) > 1, name


SMALL = [DENSE, (f32(1, 7), f32(7, 3), f32(3)), (f32(2, 64), f32(64, 5), f32(5))]


@pytest.mark.parametrize(("args", "step"), [(SMALL[0], 9), *(pytest.param(args, 1, marks=pytest.mark.full) for args in SMALL)])
def test_every_candidate_computes_the_same(args: Any, step: int) -> None:
    found = subject(args=args)
    expected = run(found.program, "alone", [np.asarray(x) for x in found.inputs])
    for choice in (found.default, *found.others[::step]):
        (function,) = found.compiled(choice)
        for value, wanted in zip(function.flat(*found.inputs), expected):
            np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-4, err_msg=str(choice))


@pytest.mark.parametrize(
    ("function", "args", "spec"),
    [
        (lambda x, w: x @ w, (f32(5, 7), f32(7, 3)), "ac,cb->ab"),
        (lambda x, w: x @ w.T, (f32(5, 7), f32(3, 7)), "ac,bc->ab"),
        (lambda x, w: gd.einsum("bik,bkj->bij", x, w), (f32(2, 5, 7), f32(2, 7, 3)), "abd,adc->abc"),
        (lambda x, w: gd.tanh(x.T @ w + 1), (f32(7, 5), f32(7, 3)), "ca,cb->ab"),
        (dense, DENSE, "ac,cb->ab"),
    ],
)
def test_a_contraction_by_the_library_means_the_same(function: Any, args: Any, spec: str) -> None:
    module = outlined(function, *args)
    kernel = next(k for k in kernels(module) if library_form(k) is not None)
    name = next(op.sym_name.data for op in module.body.block.ops if isinstance(op, FuncOp) and op not in kernels(module))
    inputs = [np.asarray(x) for x in args]
    expected = run(module, name, inputs)
    form = library_form(kernel)
    assert form is not None and len(form) == len(spec)
    call_library(module, kernel, form, 1, "tuned: for fun")
    for value, wanted in zip(run(module, name, inputs), expected):
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-5)
    compiled = compile_module(module, cache=False)
    for value, wanted in zip(compiled[name].flat(*inputs), expected):
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-5)
    assert "blas.contract" in [row["library"] for row in compiled.manifest.details["kernels"] if "library" in row]
    assert "tuned: for fun" in compiled.explain()


@pytest.mark.parametrize(
    ("function", "args", "options"),
    [
        (lambda x: gd.sum(x, axis=1), (f32(4, 4),), {}),
        (lambda x, w: x @ w, (np.ones((4, 4), np.int32), np.ones((4, 4), np.int32)), {}),
        (lambda x, w: x @ w, (f32(4, 4), f32(4, 4)), {"dynamic": {"x": ("b", 4)}}),
        (lambda x, w: gd.conv(x, w), (f32(1, 8, 8, 2), f32(3, 3, 2, 4)), {}),
    ],
)
def test_what_the_library_does_not_compute(function: Any, args: Any, options: Any) -> None:
    assert [library_form(kernel) for kernel in kernels(outlined(function, *args, **options))] == [None] * len(
        kernels(outlined(function, *args, **options))
    )


def test_threads_of_the_library() -> None:
    set_count, files = set_threads(), sorted(Path(np.__file__).parent.parent.glob("numpy.libs/*openblas*"))
    if set_count is None or len(files) != 1:
        pytest.skip("this numpy does not bring OpenBLAS")
    count = getattr(ctypes.CDLL(str(files[0])), set_count.__name__.replace("_set_", "_get_"))
    for wanted in (1, 2):
        set_count(wanted)
        assert count() == wanted


def test_the_fastest_significant_form_is_taken() -> None:
    found = subject()

    def measure(job: Job) -> list[Outcome]:
        made = [form() for form in job.forms]
        tiles = [next(row["schedule"].get("tile") for row in module.manifest.details["kernels"]) for module in made]
        return [Outcome((0.5 if tile == [4, 16] else 1.0,) * job.rounds) for tile in tiles]

    result = search(found, measure, seconds=60)
    assert result.record.changed and result.record.choice.fields["tile"] == (4, 16)
    assert result.record.gain == pytest.approx(2) and result.record.tried == len(found.others) + 1 and not result.refused
    assert result.record.reason.startswith("tuned: 2.00 times as fast as contraction tile 6x16")


@pytest.mark.parametrize(("ratio", "changed"), [(1.0, False), (0.98, False), (0.96, True), (1.5, False)])
def test_a_small_gain_is_none(ratio: float, changed: bool) -> None:
    result = search(subject(), by_form(lambda k: ratio if k else 1.0), seconds=60)
    assert result.record.changed is changed
    if not changed:
        assert result.record.seconds == result.record.default_seconds == 1.0 and "fastest of" in result.record.reason


def test_noise_is_no_gain() -> None:
    rng = np.random.default_rng(1)
    base = rng.lognormal(0, 0.3, 25)
    assert not significant(list(rng.lognormal(-0.05, 0.3, 25)), list(base))
    assert significant(list(base * 0.9), list(base)) and not significant(list(base * 0.99), list(base)) and not significant([], [])


def test_a_refused_form_is_never_taken() -> None:
    def measure(job: Job) -> list[Outcome]:
        return [Outcome((1.0,) * job.rounds) if k == 0 else Outcome(refused="result 0 differs") for k in range(len(job.forms))]

    found = subject()
    result = search(found, measure, seconds=60)
    assert not result.record.changed and len(result.refused) == len({str(choice) for choice in found.others})


def test_a_winner_that_the_reference_contradicts_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Choice] = []

    def wrong(_: Subject, choice: Choice) -> str:
        asked.append(choice)
        return "" if len(asked) == 3 else "result 0 at [0]: 1 expected, 2 found"

    monkeypatch.setattr(searching, "differs_from_reference", wrong)
    result = search(subject(), by_form(lambda k: 1.0 - 0.1 * min(k, 3)), seconds=60)
    assert len(asked) == 3 and result.record.choice == asked[2] and {str(c) for c in asked[:2]} <= set(result.refused)


def test_the_reference_is_asked_for_winners() -> None:
    from gradir.driver.tuning.semantics import differs_from_reference

    found = subject()
    assert found.points > 0 and differs_from_reference(found, found.others[-1]) == ""
    other = subject(lambda x, w, b: gd.relu(x @ w + b) + 1)
    assert differs_from_reference(replace(found, program=other.program), found.default) == ""
    lying = replace(found, inputs=found.inputs, points=found.points)
    object.__setattr__(lying, "compiled", lambda choice: other.compiled(other.default))
    assert differs_from_reference(lying, found.default).startswith("result 0 at [")


def test_no_time_still_tries_the_likeliest() -> None:
    told: list[tuple[str, int, int]] = []
    found = subject()
    result = search(found, by_form(lambda k: 1.0), seconds=0, tell=lambda *row: told.append(row))
    assert result.record.tried == searching.BATCH + 1 and told == [(found.name, searching.BATCH, len(found.others))]


def test_records_round_trip_and_damage_counts_as_absent(tmp_path: Path) -> None:
    records = Records(tmp_path)
    assert records.state() == "" and records.all() == [] and not records.known("t") and records.find("t", RECORD.key) is None
    records.put("t", RECORD)
    assert records.find("t", RECORD.key) == RECORD and records.known("t") and records.state()
    assert records.all() == [("t", True, [RECORD])]
    path = records.folder("t") / f"{RECORD.key}.json"
    for damage in ("{", "[]", json.dumps({**RECORD.to_json(), "format": 0}), json.dumps({**RECORD.to_json(), "tried": None})):
        path.write_text(damage)
        assert records.find("t", RECORD.key) is None
    records.put("t", RECORD)
    before = records.state()
    records.drop("t", RECORD.key)
    assert records.state() != before and records.find("t", RECORD.key) is None
    records.put("t", RECORD)
    assert records.clear() == 1 and records.all() == []


def test_another_compiler_has_other_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gradir.driver.tuning import records as module

    records = Records(tmp_path)
    records.put("t", RECORD)
    monkeypatch.setattr(module, "toolchain", lambda: "another version")
    assert records.find("t", RECORD.key) is None and [(t, ours) for t, ours, _ in records.all()] == [("t", False)]
    assert json.loads(records.export())["folders"] == []


def test_export_and_import(tmp_path: Path) -> None:
    first, second = Records(tmp_path / "a"), Records(tmp_path / "b")
    first.put("t", RECORD)
    assert second.take(first.export(), "x.json") == 1 and second.find("t", RECORD.key) == RECORD
    value = json.loads(first.export())
    for text in ("{", "[]", json.dumps({**value, "versions": {"gradir": "0"}}), json.dumps({**value, "folders": [{}]})):
        with pytest.raises(GradirError) as caught:
            second.take(text, "x.json")
        assert caught.value.code == "RT062" and "x.json" in caught.value.message


def test_a_choice_of_another_version_is_none() -> None:
    assert Choice("contraction", {"tile": (4, 16)}).schedule() == ContractionAttr.of(tile=[4, 16])
    assert Choice("contraction", {"wonder": (1,)}).schedule() is None and Choice("magic").schedule() is None and BLAS.schedule() is None
    assert str(Choice.of(ElementwiseAttr.of(tile=[8]))) == "elementwise tile 8" and str(BLAS) == "@blas.contract"
