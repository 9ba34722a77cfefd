"""The tuner: candidates, trials, search, records, and programs that pick decisions up. Nothing looks at a clock: times are made up."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.dialects.kernel import KERNEL_ATTRIBUTE, ContractionAttr, ElementwiseAttr
from gradir.dialects.upstream.func import FuncOp
from gradir.driver.compile import Hooks, compile_module, compile_watched
from gradir.driver.report import CompileReport
from gradir.driver.tuning import search as searching
from gradir.driver.tuning.alternatives import Subject, subject_of
from gradir.driver.tuning.apply import apply_records, tuning_key
from gradir.driver.tuning.records import Choice, Record, Records
from gradir.driver.tuning.search import search, significant
from gradir.driver.tuning.trials import Job, Outcome, measure_in_child
from gradir.driver.tuning.tune import tune
from gradir.errors import GradirError
from gradir.lowering.groups import group_of_kernel
from gradir.lowering.library_contraction import call_library, library_form
from gradir.lowering.schedules import HEURISTICS
from gradir.lowering.schedules.candidates import MOST, candidates
from gradir.lowering.schedules.machine import Machine
from gradir.reference import run
from gradir.runtime.library.blas import set_threads
from gradir.runtime.module import Module
from gradir.runtime.trial import Guarded, Tolerance
from tests.driver.test_explain import LIMITS, f32, made_up

BLAS = Choice("library", {}, "blas.contract")


def outlined(function: Any, *args: Any, threads: int = 1, **options: Any) -> Any:
    """The level-2 module with kernels that have no schedules."""
    found: list[Any] = []
    module = gd.jit(function, **options).lower(*args)
    compile_watched(module, Hooks(lambda m: found.append(m.clone())), cache=False, threads=threads)
    return found[0]


def kernels(module: Any) -> list[FuncOp]:
    return [op for op in module.body.block.ops if isinstance(op, FuncOp) and KERNEL_ATTRIBUTE in op.attributes]


def dense(x: Any, w: Any, b: Any) -> Any:
    return gd.relu(x @ w + b)


DENSE = (f32(24, 40), f32(40, 32), f32(32))


def subject(function: Any = dense, args: Sequence[Any] = DENSE, threads: int = 1, **options: Any) -> Subject:
    module = outlined(function, *args, threads=threads, **options)
    found = subject_of(module, kernels(module)[0], {})
    assert isinstance(found, Subject)
    return found


def by_form(seconds: Callable[[int], float]) -> Callable[[Job], list[Outcome]]:
    """A measurement in which form k of a job takes `seconds(k)` in every round."""

    return lambda job: [Outcome((seconds(k),) * job.rounds) for k in range(len(job.forms))]


# -- candidates


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


# -- a vendor's library


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


# -- trials


def saved(factor: float, shape: tuple[int, ...] = (8,)) -> Callable[[], Module]:
    return lambda: compile_module(gd.jit(lambda x: x * factor).lower(f32(*shape)), cache=False)


def test_a_child_checks_every_form_and_times_the_good_ones() -> None:
    outcomes = measure_in_child(Job([saved(2.0), saved(2.0), saved(3.0)], [f32(8)], sets=2, rounds=3, seconds=1e-5))
    assert [len(outcome.seconds) for outcome in outcomes] == [3, 3, 0]
    assert not outcomes[1].refused and outcomes[2].refused.startswith("result 0 at [0]:") and "8 of 8 differ" in outcomes[2].refused


def test_a_form_that_does_not_compile_is_refused() -> None:
    def broken() -> Module:
        raise GradirError("no", part="operator", code="OP043")

    outcomes = measure_in_child(Job([saved(2.0), broken, saved(2.0)], [f32(8)], rounds=1, seconds=1e-5))
    assert outcomes[0].seconds and outcomes[1].refused == "it does not compile: OP043" and outcomes[2].seconds
    with pytest.raises(GradirError) as caught:
        measure_in_child(Job([broken, saved(2.0)], [f32(8)], rounds=1, seconds=1e-5))
    assert caught.value.code == "RT063" and "OP043" in caught.value.found


def unknown_function() -> Module:
    """Loads here, not in the child: there the name of its function is unknown, so the child ends with an error."""
    gd.register_custom_call("only_here", lambda x: x * 2, shape=lambda x: gd.Spec(x.shape, x.dtype))
    return compile_module(gd.jit(lambda x: gd.custom_call("only_here", x)).lower(f32(8)), cache=False)


def test_a_form_that_ends_the_child_is_refused_and_the_others_go_on() -> None:
    outcomes = measure_in_child(Job([saved(2.0), unknown_function, saved(2.0)], [f32(8)], rounds=2, seconds=1e-5))
    assert outcomes[0].seconds and outcomes[2].seconds and outcomes[1].refused.startswith("it ends the process")
    with pytest.raises(GradirError) as caught:
        measure_in_child(Job([unknown_function, saved(2.0)], [f32(8)], rounds=2, seconds=1e-5))
    assert caught.value.code == "RT063" and "ends the process" in caught.value.found


def endless() -> Module:
    def f(x: Any) -> Any:
        return gd.while_loop(lambda s: gd.sum(s) < 1, lambda s: s * 0, x * 0)

    return compile_module(gd.jit(f).lower(f32(8)), cache=False)


def test_a_form_that_hangs_is_refused() -> None:
    outcomes = measure_in_child(Job([saved(2.0), endless], [f32(8)], rounds=1, seconds=1e-5), silence=1.5)
    assert outcomes[0].seconds == () and outcomes[1].refused.startswith("it hangs")


def test_marks_around_results() -> None:
    guarded = Guarded([np.zeros((3, 5), np.float32), np.zeros((), np.int64)])
    assert [a.shape for a in guarded.arrays] == [(3, 5), ()] and all(a.ctypes.data % 64 == 0 for a in guarded.arrays)
    for array in guarded.arrays:
        array[...] = 7
    assert not guarded.broken()
    np.lib.stride_tricks.as_strided(guarded.arrays[0], (16,), (4,))[15] = 1
    assert guarded.broken()


def test_tolerance_is_that_of_another_order_of_sums() -> None:
    x = f32(1000)
    tolerance = Tolerance.of(lambda arrays: [np.asarray(np.sum(arrays[0])), np.arange(3), arrays[0] > 0], [x])
    good = [np.asarray(np.float32(np.sum(x[::-1].astype(np.float64)))), np.arange(3), x > 0]
    assert tolerance.difference(good) == ""
    off = np.asarray(good[0] * np.float32(1.001) + np.float32(0.01))
    assert tolerance.difference([off, *good[1:]]).startswith("result 0 at []")
    assert tolerance.difference([good[0], np.array([0, 1, 3]), good[2]]).startswith("result 1 at [2]: 2 expected, 3 found (1 of 3")
    nan = Tolerance.of(lambda arrays: [arrays[0] * np.float32(np.nan)], [np.zeros(2, np.float32)])
    assert nan.difference([np.full(2, np.nan, np.float32)]) == "" and nan.difference([np.zeros(2, np.float32)])


# -- search


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


# -- records


RECORD = Record("k" * 32, "contraction_0", "m.py:1:1", Choice("contraction", {"tile": (6, 16)}), BLAS, 2.0, 1.0, 9, 1)


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


# -- programs


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


def test_threads_of_the_library() -> None:
    set_count = set_threads()
    assert set_count is None or set_count(2) is None
