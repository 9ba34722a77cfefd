"""`explain`: costs by hand, rows of programs with loops, branches, run-time sizes and library functions, recordings, bounds, trace and page.

Nothing looks at a clock: the marks are real (which calls, how often, on what shapes), durations come from made-up recordings.
"""

import json
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.driver.explain import describe, explain, save_page
from gradir.driver.explain.explanation import KernelRow, count_text, duration_text, short_place
from gradir.driver.explain.measure import Measurement, Run, spans_of
from gradir.driver.explain.page import roofline
from gradir.driver.explain.rooflines import LimitsFile, best_of, bound_of
from gradir.driver.explain.trace import trace_of
from gradir.driver.limits import Limits
from gradir.errors import GradirError
from gradir.runtime import Buffer
from gradir.runtime.profile import SITES, Recording, record

PLACES = {"L1": 16 << 10, "L2": 256 << 10, "L3": 16 << 20, "memory": 256 << 20}
KINDS = ("copy", "stream_copy", "read", "write", "stream_write")
LIMITS = Limits(
    "made up",
    256,
    PLACES,
    {(dtype, n): n * rate for n in (1, 2) for dtype, rate in (("f32", 1e11), ("f64", 5e10))},
    {(kind, place, n): n * 1e9 * gb for n in (1, 2) for place, gb in zip(PLACES, (200, 100, 50, 10)) for kind in KINDS},
)
RNG = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def made_up(instrumented: Any, plain: Any) -> Measurement:
    """One real run; the clock is replaced: every row is one microsecond after the one before."""
    with record() as recording:
        instrumented()
    rows = recording.rows.copy()
    calls = rows[:, 0] >= 0
    rows[calls, 2] = rows[calls, 3] = 1000 * np.arange(1, calls.sum() + 1)
    return Measurement([Run(0, 1000 * (int(calls.sum()) + 1), Recording(rows))], [5e-6])


def explained(function: Any, *args: Any, **options: Any) -> Any:
    jitted = function if hasattr(function, "lower") else gd.jit(function, cache=False)
    leaves = list(args)
    return explain(jitted.lower(*args), leaves, limits=LIMITS, measure=made_up, cache=False, **options)


def test_one_product_by_hand() -> None:
    found = explained(lambda x, w: gd.relu(x @ w), f32(8, 16), f32(16, 32), threads=1)
    (row,) = found.rows
    assert (row.name, row.kind, row.calls, row.choice) == ("contraction_0", "contraction", 1, "heuristic")
    assert row.flops == 2 * 8 * 16 * 32 + 8 * 32  # a product and the maximum
    assert (row.bytes_read, row.bytes_written) == (4 * (8 * 16 + 16 * 32), 4 * 8 * 32)
    assert row.intensity == row.flops / row.bytes
    assert row.seconds == pytest.approx(1e-6) and found.seconds == pytest.approx(3e-6) and row.share == pytest.approx(1 / 3)
    assert row.bound == pytest.approx(row.flops / 1e11) and row.bound_by == "compute" and row.of_bound == pytest.approx(row.bound / 1e-6)
    assert "accumulators" in row.reason and row.locations[0].split(":")[0].endswith("test_explain.py")
    assert found.rest == pytest.approx(2e-6) and found.plain_seconds == 5e-6 and not SITES


def test_loops_count_their_calls_and_branches_what_ran() -> None:
    def f(x: Any, xs: Any, p: Any) -> Any:
        s = gd.scan(lambda s, y: (gd.tanh(s @ x + y), None), gd.zeros((4, 8)), xs)[0]
        return gd.cond(p, lambda s: gd.sum(gd.exp(s), axis=0), lambda s: gd.max(s, axis=0) * 2, s)

    x, xs = f32(8, 8), f32(5, 4, 8)
    yes, no = (explained(gd.jit(lambda x, xs, p: gd.sum(f(x, xs, p)), cache=False), x, xs, np.bool_(p)) for p in (True, False))
    for found in (yes, no):
        (product,) = [row for row in found.rows if row.kind == "contraction"]
        assert product.calls == 5 and product.flops == 5 * (2 * 4 * 8 * 8 + 2 * 4 * 8)
    called = [{row.name for row in found.rows if row.calls} for found in (yes, no)]
    assert called[0] != called[1] and {row.name for row in yes.rows} == {row.name for row in no.rows}
    idle = next(row for row in yes.rows if not row.calls)
    assert idle.seconds == 0 and idle.flops == 0 and idle.of_bound is None


def test_run_time_sizes_are_those_of_the_run() -> None:
    f = gd.jit(lambda x, w: gd.softmax(x @ w), cache=False, dynamic={"x": ("b", 16)})
    for rows in (3, 40):
        found = explained(f, f32(rows, 16), f32(16, 8))
        by_kind = {row.kind: row for row in found.rows}
        assert by_kind["contraction"].flops == 2 * rows * 16 * 8
        assert by_kind["contraction"].bytes == 4 * (rows * 16 + 16 * 8 + rows * 8)
        assert by_kind["rows"].bytes == 4 * 2 * rows * 8


def test_library_functions_and_templates() -> None:
    found = explained(
        lambda a, b: gd.linalg.solve_triangular(gd.sort(a), b, lower=True), f32(96, 96) + 96 * np.eye(96, dtype=np.float32), f32(96, 4)
    )
    kinds = {row.kind: row for row in found.rows}
    assert "template" in kinds
    if "library" in kinds:
        assert kinds["library"].flops == 96 * 96 * 4 and kinds["library"].reason == "@lapack.trsm"


def test_a_gather_reads_the_rows_that_it_takes() -> None:
    found = explained(lambda table, k: table[k], f32(1000, 8), np.array([1, 5, 7], np.int32))
    assert sum(row.bytes_read for row in found.rows) <= 2 * (3 * 8 * 4 + 3 * 8 * 8)


def test_describe_runs_nothing() -> None:
    found = describe(gd.jit(lambda x: gd.sum(x * 2, axis=1)).lower(f32(8, 8)))
    assert found.seconds is None and found.rest is None and not found.events
    assert all(row.calls is None and row.seconds is None and row.reason for row in found.rows)
    assert "not run" in str(found)


def test_a_schedule_by_hand_is_called_so() -> None:
    text = gd.jit(lambda x: x + 1).lower(f32(64))
    from gradir.driver.lower import lower
    from gradir.ir.text import print_module

    level2 = print_module(lower(text.clone(), last="structured"))
    by_hand = level2.replace("tile = [16]", "tile = [8]")
    assert by_hand != level2
    (row,) = describe(
        gd.parse("\n".join(line.split(", gradir.reason")[0] + "} {" if "gradir.reason" in line else line for line in by_hand.split("\n")))
    ).rows
    assert row.choice == "by hand" and row.schedule["tile"] == (8,) and row.strategy == "elementwise tile 8"


def test_without_arguments_random_ones_are_made() -> None:
    module = gd.jit(lambda x, k, p: gd.sum(gd.where(p, x, 0)) + gd.sum(k)).lower(f32(4), np.arange(3, dtype=np.int32), np.ones(4, bool))
    assert explain(module, limits=LIMITS, measure=made_up, cache=False).rows
    with pytest.raises(GradirError) as caught:
        explain(gd.jit(lambda x: x + 1, dynamic={"x": ("b",)}).lower(f32(4)), limits=LIMITS, measure=made_up, cache=False)
    assert caught.value.code == "RT060" and "bxf32" in caught.value.expected


def test_donated_arguments_are_left_as_they_are() -> None:
    step = gd.jit(lambda p, x: p * 3 + x, donate=("p",)).compile(f32(4), f32(4))
    for p in (np.ones(4, np.float32), Buffer.from_array(np.ones(4, np.float32))):
        assert explain(step.level1, [p, f32(4)], limits=LIMITS, cache=False).rows
        np.testing.assert_array_equal(np.asarray(p), np.ones(4))


def test_threads_that_took_part_are_counted() -> None:
    rows = [[0, 7, 10, 10], [-1, 7, 11, 15], [-1, 8, 12, 19], [1, 7, 20, 20], [2, 7, 30, 30], [3, 7, 31, 31]]
    spans = spans_of(Recording(np.array(rows, np.int64)))
    assert [(s.site, s.thread, s.begin, s.end, s.chunk) for s in spans] == [
        (0, 7, 10, 20, False), (0, 7, 11, 15, True), (0, 8, 12, 19, True), (1, 7, 30, 31, False),
    ]  # fmt: skip


def test_parallel_loops_are_recorded_in_chunks() -> None:
    found = explained(lambda x, w: x @ w, f32(512, 256), f32(256, 512), threads=2)
    chunks = [event for event in found.events if event.chunk]
    assert chunks and {event.name for event in chunks} == {"contraction_0"} and found.rows[0].threads >= 1


def test_a_recording_that_is_full_says_so() -> None:
    def short(instrumented: Any, plain: Any) -> Measurement:
        with record(capacity=3) as recording:
            instrumented()
        return Measurement([Run(0, 1000, recording)], [])

    found = explain(gd.jit(lambda x: gd.sum(x @ x.T)).lower(f32(4, 4)), [f32(4, 4)], limits=LIMITS, measure=short, cache=False)
    assert found.dropped >= 1 and "did not fit" in str(found) and found.plain_seconds is None


@pytest.mark.parametrize(
    ("flops", "read", "written", "by", "seconds"),
    [
        (10**9, 1000, 1000, "compute", 1e-2),
        (10, 16 << 10, 0, "L1", (16 << 10) / 200e9),
        (10, 0, 400 << 10, "L2", (400 << 10) / 100e9),
        (10, 8 << 20, 8 << 20, "L3", (16 << 20) / 50e9),
        (None, 1 << 30, 1 << 30, "memory", (2 << 30) / 10e9),
    ],
)
def test_bounds(flops: int | None, read: int, written: int, by: str, seconds: float) -> None:
    bound = bound_of(flops, read, written, "f32", 1, LIMITS)
    assert bound is not None and bound.by == by and bound.seconds == pytest.approx(seconds)
    twice = bound_of(flops, read, written, "f32", 2, LIMITS)
    assert twice is not None and twice.seconds == pytest.approx(seconds / 2)
    assert bound_of(0, 0, 0, "f32", 1, LIMITS) is None


def test_limits_are_kept_and_the_best_of_three_measurements_wins(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from gradir.dialects.target import host_target
    from gradir.driver.explain import rooflines

    rates = iter([1.0, 3.0, 2.0, 9.0])

    def measured(*, threads: tuple[int, ...]) -> Limits:
        factor = next(rates)
        return Limits("cpu", 256, PLACES, {k: v * factor for k, v in LIMITS.flops.items()}, dict(LIMITS.bandwidth))

    monkeypatch.setattr(rooflines, "measure_limits", measured)
    file = LimitsFile.of(host_target(), tmp_path)
    assert [file.limits().flops["f32", 1] / 1e11 for _ in range(2)] == [1, 1]
    assert [file.measured_again().flops["f32", 1] / 1e11 for _ in range(3)] == [3, 3, 3]
    assert Limits.from_json(LIMITS.to_json()) == LIMITS == best_of(LIMITS, LIMITS)
    assert file.path is not None
    file.path.write_text("{")
    assert file.limits().flops["f32", 1] == 9e11


def test_json_trace_and_page(tmp_path: Any) -> None:
    found = explained(lambda x, w: gd.sum(gd.tanh(x @ w)), f32(8, 16), f32(16, 32))
    value = json.loads(found.to_json())
    assert {"function", "target", "threads", "seconds", "kernels", "limits"} <= set(value)
    assert {"name", "schedule", "reason", "flops", "bytes", "intensity", "bound", "of_bound", "share"} <= set(value["kernels"][0])
    trace = trace_of(found)["traceEvents"]
    spans = [event for event in trace if event["ph"] == "X"]
    assert len(spans) == len(found.events) and all(event["dur"] >= 0 and event["args"]["location"] for event in spans)
    assert next(event["args"]["name"] for event in trace if event["name"] == "thread_name") == "caller"
    page = save_page(found, tmp_path / "page")
    text = page.read_text()
    assert "<svg" in text and "contraction_0" in text and "trace.json" in text
    assert json.loads((page.parent / "trace.json").read_text())["traceEvents"] == trace
    assert (page.parent / "roofline.svg").read_bytes().startswith(b"<?xml") and (page.parent / "roofline.png").exists()


def test_a_plot_of_nothing_is_refused() -> None:
    with pytest.raises(GradirError) as caught:
        roofline(describe(gd.jit(lambda x: x + 1).lower(f32(4))))
    assert caught.value.code == "RT061" and "no limits" in caught.value.found


def test_rich_table_has_the_same_cells() -> None:
    found = explained(lambda x: x * 2, f32(4))
    assert found.__rich__().row_count == len(found.cells()) == len(found.rows) + 1


def test_texts() -> None:
    assert [count_text(n) for n in (0, 999, 1234, 5.5e6, 2e12)] == ["0", "999", "1.23k", "5.5M", "2T"]
    assert [duration_text(s) for s in (2.0, 0.0315, 4.2e-6, 7e-9)] == ["2 s", "31.5 ms", "4.2 us", "7 ns"]
    assert [short_place(p) for p in ("/a/b/model.py:12:4", "m.mlir:3:1", "name", "")] == ["model.py:12", "m.mlir:3", "name", ""]
    row = KernelRow("k", "contraction", {"tile": (6, 16), "pack": (), "parallel": (1,)}, "tuned", "why", ("a.py:1:1", "b.py:2:2"))
    assert row.strategy == "contraction tile 6x16 parallel 1"


def test_compiled_functions_explain_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradir.driver import explain as explaining

    monkeypatch.setattr(explaining, "measure_runs", lambda: made_up)
    monkeypatch.setattr(explaining.LimitsFile, "limits", lambda self: LIMITS)
    monkeypatch.setattr(explaining.LimitsFile, "measured_again", lambda self: LIMITS)
    compiled = gd.jit(lambda p: gd.sum(p["x"] @ p["w"]), cache=False).compile({"x": f32(4, 8), "w": f32(8, 4)})
    for found in (compiled.explain({"x": f32(4, 8), "w": f32(8, 4)}), compiled.explain()):
        assert found.rows[0].locations and found.seconds
    with pytest.raises(GradirError) as caught:
        compiled.explain([f32(4, 8), f32(8, 4)])
    assert caught.value.code == "GR107"
