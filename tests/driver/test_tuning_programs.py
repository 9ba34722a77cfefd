"""Programs and the decisions of the tuner: which are used, which are withdrawn, who asks for them. Times are made up."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.dialects.kernel import KERNEL_ATTRIBUTE, ContractionAttr
from gradir.driver.compile import compile_module
from gradir.driver.report import CompileReport
from gradir.driver.tuning.apply import apply_records, tuning_key
from gradir.driver.tuning.records import Choice, Records
from gradir.driver.tuning.trials import Job, Outcome
from gradir.driver.tuning.tune import tune
from gradir.errors import GradirError
from tests.driver.test_explain import LIMITS, f32, made_up
from tests.driver.tuned_kernels import BLAS, DENSE, RECORD, by_form, dense, kernels, outlined


def test_the_key_of_a_kernel_is_its_structure() -> None:
    keys = [tuning_key(kernels(outlined(dense, *args))[0]) for args in (DENSE, DENSE, (f32(24, 41), f32(41, 32), f32(32)))]
    assert keys[0] == keys[1] != keys[2]
    (kernel,) = kernels(outlined(dense, *DENSE))
    kernel.attributes[KERNEL_ATTRIBUTE] = ContractionAttr.of(tile=[4, 16])
    assert tuning_key(kernel) == keys[0] and kernel.attributes[KERNEL_ATTRIBUTE] == ContractionAttr.of(tile=[4, 16])


def decided(directory: Path, choice: Choice, threads: int = 1) -> Records:
    module = outlined(dense, *DENSE, threads=threads)
    records = Records(directory)
    target = str(module.attributes["gradir.target"])
    (kernel,) = kernels(module)
    records.put(target, replace(RECORD, key=tuning_key(kernel), choice=choice))
    return records


@pytest.mark.parametrize("choice", [Choice("contraction", {"tile": (4, 8)}), Choice("loops", {"tile": (8,)}), BLAS])
def test_later_compilations_use_decisions(tmp_path: Path, choice: Choice) -> None:
    module = gd.jit(dense).lower(*DENSE)
    before = compile_module(module, threads=1, cache=tmp_path)
    decided(tmp_path, choice)
    report = CompileReport()
    after = compile_module(module, threads=1, cache=tmp_path, report=report)
    assert report.program_cache == "miss" and report.kernels_tuned == 1
    rows = after.manifest.details["kernels"]
    assert [row["choice"] for row in before.manifest.details["kernels"]] == ["heuristic"] and rows[0]["choice"] == "tuned"
    assert rows[0].get("library", rows[0]["kind"]) == (choice.library or choice.kind)
    assert rows[0]["schedule"] == {name: list(values) for name, values in choice.fields.items()}
    for a, b in zip(before["dense"].flat(*DENSE), after["dense"].flat(*DENSE)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    again = CompileReport()
    compile_module(module, threads=1, cache=tmp_path, report=again)
    assert again.program_cache == "hit"
    assert compile_module(module, threads=2, cache=tmp_path).manifest.details["kernels"][0]["choice"] == "heuristic"
    assert compile_module(module, threads=1, cache=False).manifest.details["kernels"][0]["choice"] == "heuristic"
    assert compile_module(module, threads=1, cache=tmp_path, report=CompileReport(keep_ir=True)).manifest.details["kernels"] == rows


def test_a_decision_that_cannot_be_followed_is_ignored(tmp_path: Path) -> None:
    module = outlined(dense, *DENSE)
    assert apply_records(module, decided(tmp_path, Choice("magic"))) == []
    integers = outlined(lambda x, w: x @ w, np.ones((4, 4), np.int32), np.ones((4, 4), np.int32))
    records = Records(tmp_path)
    records.put(str(integers.attributes["gradir.target"]), replace(RECORD, key=tuning_key(kernels(integers)[0])))
    assert apply_records(integers, records) == []


def test_a_schedule_by_hand_beats_a_decision(tmp_path: Path) -> None:
    module = outlined(dense, *DENSE)
    (kernel,) = kernels(module)
    kernel.attributes[KERNEL_ATTRIBUTE] = ContractionAttr.of(tile=[2, 16])
    assert apply_records(module, decided(tmp_path, Choice("contraction", {"tile": (4, 8)}))) == []
    assert kernel.attributes[KERNEL_ATTRIBUTE] == ContractionAttr.of(tile=[2, 16])


def program(x: Any, w: Any, b: Any) -> Any:
    return gd.softmax(dense(x, w, b))


def tuned(tmp_path: Path, measure: Callable[[Job], list[Outcome]], function: Any = program, args: Any = DENSE, **options: Any) -> Any:
    module = gd.jit(function, **{k: options.pop(k) for k in ("dynamic",) if k in options}).lower(*args)
    settings: dict[str, Any] = {"threads": 1, "cache": tmp_path, "profile": made_up, "limits": LIMITS, "seconds": 600.0, **options}
    return tune(module, list(args), measure=measure, **settings)


def test_tuning_a_program(tmp_path: Path) -> None:
    report = tuned(tmp_path, by_form(lambda k: 1.0 - 0.05 * k))
    assert [kernel.name for kernel in report.changed] and report.before == 1.0 and report.after == 0.95 and not report.withdrawn
    assert {kernel.name for kernel in report.kernels} == {"contraction_0", "rows_0"}
    text = str(report)
    assert "contraction_0" in text and "the program: 1 s before, 950 ms after" in text and json.dumps(report.to_json())
    rows = gd.jit(program, threads=1, cache=tmp_path).compile(*DENSE).module.manifest.details["kernels"]
    assert "tuned" in {row["choice"] for row in rows}

    def never(job: Job) -> list[Outcome]:
        raise AssertionError("what was decided is not measured again")

    second = tuned(tmp_path, lambda job: [Outcome((1.0,) * job.rounds)] * len(job.forms) if job.entry == "program" else never(job))
    assert [kernel.record for kernel in second.kernels] == [kernel.record for kernel in report.kernels]
    assert tuned(tmp_path, by_form(lambda k: 1.0), again=True).changed == ()


def test_decisions_that_make_the_program_slower_are_withdrawn(tmp_path: Path) -> None:
    def measure(job: Job) -> list[Outcome]:
        whole = job.entry == "program"
        return [Outcome((1.0 if not k else 1.2 if whole else 0.5,) * job.rounds) for k in range(len(job.forms))]

    report = tuned(tmp_path, measure)
    assert report.withdrawn and "dropped" in str(report) and not report.changed
    assert {kernel.skipped for kernel in report.kernels if kernel.record is None} == {"faster alone, but the program is slower"}
    assert all(not record.changed for _, _, found in Records(tmp_path).all() for record in found)


def test_a_library_that_harms_its_neighbours_is_left_out(tmp_path: Path) -> None:
    """Alone the library wins one kernel and a schedule another; as a whole the program is faster without the library."""

    def measure(job: Job) -> list[Outcome]:
        modules = [form() for form in job.forms]
        calls = [bool(module.manifest.libraries) for module in modules]
        whole = job.entry == "program"
        return [
            Outcome(((1.0 if not k else (1.1 if library else 0.8) if whole else 0.5 if library else 0.9),) * job.rounds)
            for k, library in enumerate(calls)
        ]

    report = tuned(tmp_path, measure)
    (library,) = [kernel for kernel in report.kernels if kernel.record is None]
    assert library.name == "contraction_0" and [kernel.name for kernel in report.changed] == ["rows_0"]
    assert (report.before, report.after, report.withdrawn) == (1.0, 0.8, False)
    rows = gd.jit(program, threads=1, cache=tmp_path).compile(*DENSE).module.manifest.details["kernels"]
    assert [row["choice"] for row in rows] == ["heuristic", "tuned"]


def test_no_time_was_left(tmp_path: Path) -> None:
    clock = iter(range(0, 10000, 1000))
    report = tuned(tmp_path, by_form(lambda k: 1.0), clock=lambda: float(next(clock)))
    assert {kernel.skipped for kernel in report.kernels} == {"no time was left"} and "left alone" in str(report)


def test_run_time_sizes_are_tuned_at_those_of_the_arguments(tmp_path: Path) -> None:
    report = tuned(tmp_path, by_form(lambda k: 1.0), dense, dynamic={"x": ("b", 40)})
    assert report.kernels[0].record is not None and report.kernels[0].record.tried > 1
    with pytest.raises(GradirError) as caught:
        tune(gd.jit(dense, dynamic={"x": ("b", 40)}).lower(*DENSE), cache=tmp_path, profile=made_up, limits=LIMITS)
    assert caught.value.code == "RT060"


def test_tuning_needs_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADIR_CACHE_DIR", "")
    for cache in (False, True):
        with pytest.raises(GradirError) as caught:
            tune(gd.jit(dense).lower(*DENSE), cache=cache)
        assert caught.value.code == "RT064"


def test_jit_and_compile_tune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gradir.driver.tuning import tune as tuning

    asked: list[tuple[int, float]] = []

    def fake(module: Any, leaves: Any, **options: Any) -> Any:
        asked.append((-1 if leaves is None else len(leaves), options["seconds"]))
        return None

    monkeypatch.setattr(tuning, "tune", fake)
    gd.jit(dense, cache=tmp_path, tune=True)(*DENSE)
    gd.jit(dense, cache=tmp_path, tune=2.5)(*DENSE)
    gd.jit(dense, cache=tmp_path)(*DENSE)
    gd.compile(dense, *(gd.Spec(x.shape, "float32") for x in DENSE), cache=tmp_path, tune=7)
    gd.compile(gd.jit(dense, cache=tmp_path), *DENSE, tune=8)
    gd.compile(gd.jit(dense).lower(*DENSE), cache=tmp_path, tune=9)
    gd.jit(dense, cache=tmp_path).compile(*DENSE).tune(*DENSE, seconds=10)
    assert asked == [(3, 30.0), (3, 2.5), (-1, 7), (3, 8), (-1, 9), (3, 10)]
