"""The file of results, ratios, and the page that is made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench import results as res
from bench.__main__ import cell_text, markdown, ratio_text, selected
from bench.peer import Peer
from bench.performance.data import DATA, Data
from bench.performance.lines import lines
from bench.performance.page import page
from bench.workloads import COMPARED, WORKLOADS
from gradir.driver.limits import KINDS, Limits

ROOT = Path(__file__).resolve().parent.parent.parent
MACHINE = {"cpu": "a cpu", "cores": 2, "system": "Linux", "python": "3.13"}


def cell(seconds: float, **more: Any) -> dict[str, Any]:
    timing = {"median": seconds, "p10": seconds, "p90": 2 * seconds, "samples": 3}
    return {
        "wall": timing,
        "cpu": {**timing, "median": seconds / 2},
        "first": 10 * seconds,
        "once": seconds,
        "error": 1e-7,
        "rise": 1 << 20,
        **more,
    }


def run(threads: int = 1, factor: float = 0.5) -> res.Results:
    """Every workload: we take `factor` of jax's time, torch fails."""
    found = res.empty(threads, MACHINE)
    found["systems"] = {"gradir": "0.1", "jax": "0.10", "torch": "2"}
    for k, name in enumerate(WORKLOADS):
        base = 1e-3 * (k + 1)
        memory = {"temporary": 100, "output": 20} if WORKLOADS[name].training else {}
        ours = {**memory, "temporary": 50, "arena": 50, "bound": 49} if memory else {}
        cells = {"gradir": cell(factor * base), "jax": cell(base), "torch": {"failed": "wrong result: error 1"}}
        found["workloads"][name] = {"when": "2026-01-01 00:00", "load": 0.1, "cells": cells}
        found.setdefault("firsts", {})[name] = {"gradir": 10 * factor * base, "jax": 10 * base}
        found.setdefault("plans", {})[name] = {"gradir": ours, "jax": memory} if memory else {}
    return found


def data(factor: float = 0.5) -> Data:
    limits = Limits("znver3", 256, {"memory": 1 << 28}, {("f32", 1): 1e11, ("f64", 1): 5e10}, {(k, "memory", 1): 1e10 for k in KINDS})
    share = lambda s: {"seconds": 1.0, "rate": s * 1e11, "limit": 1e11, "share": s, "floor": 0.9}
    sweep = {"gemm_128x128x128": {"1": share(0.95), "2": {**share(0.9), "seconds": 0.5}}, "conv3x3_8x64x56x56": {"1": share(0.8)}}
    section = {"sweep": sweep, "limits": limits.to_json(), "calls": {"plain": 0.4e-6, "out": 0.6e-6}}
    loaded = {**run(2), "burners": 2}
    return Data({1: run(1, factor), 2: run(2, factor)}, loaded, section)


def test_ratios_use_cpu_time_on_one_thread_and_wall_time_on_two() -> None:
    assert res.seconds_of(run(1), "gemm_128", "jax") == res.seconds_of(run(2), "gemm_128", "jax") / 2
    assert res.best_peer(run(), "gemm_128")[0] == "jax"
    assert res.ratio(run(), "gemm_128") == pytest.approx(0.5)
    assert res.seconds_of(run(), "gemm_128", "torch") is None
    assert res.ratio(run(), "no such workload") is None
    assert res.geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    assert res.geometric_mean([]) is None


def test_files_merge_by_workload(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    first, second = run(), run(factor=2.0)
    del first["workloads"]["gemm_512"]
    for section in ("workloads", "firsts", "plans"):
        second[section] = {name: second[section][name] for name in ("gemm_128", "gemm_512")}
    res.write(path, res.merged(first, second))
    again = res.read(path)
    assert res.ratio(again, "gemm_128") == pytest.approx(2.0)
    assert res.ratio(again, "gemm_512") == pytest.approx(2.0)
    assert res.ratio(again, "gemm_1024") == pytest.approx(0.5)
    assert again["firsts"]["gemm_1024"] == first["firsts"]["gemm_1024"]
    path.write_text('{"format": 0}')
    with pytest.raises(SystemExit, match="expected 1"):
        res.read(path)


def test_cells_say_why_they_are_empty() -> None:
    assert cell_text(run(), "gemm_128", "torch") == "(wrong result: error 1)"
    assert cell_text(run(), "gemm_128", "ort") == "(not run)"
    assert cell_text(run(), "gemm_128", "jax") == "1 ms [2.00]"
    assert ratio_text(run(), "gemm_128") == "0.50 of jax"


def test_selection_by_patterns_and_by_the_27() -> None:
    assert selected("gemm_*,newton") == [n for n in WORKLOADS if n.startswith("gemm_") or n == "newton"]
    assert selected("27") == list(COMPARED)


def test_lines_state_what_was_measured_and_whether_it_is_within() -> None:
    verdicts = {line.what: (line.measured, line.verdict) for line in lines(data())}
    assert verdicts["1 thread: workloads whose time is < 1.02 of the best peer's"] == ("27 of 27", "within")
    assert verdicts["1 thread: geometric mean of the ratios"] == ("0.500", "within")
    assert verdicts["1 thread: f32 products of 128 to 2048"][1] == "within"
    assert verdicts["1 thread: 3 x 3 convolutions"] == ("80 % (conv3x3_8x64x56x56) and more; 0 of 1 reach it", "beyond")
    assert verdicts["2 threads to 1, products and convolutions"] == ("2.00 (gemm_128x128x128) and more", "within")
    assert verdicts["trace and compile, training workloads, caches empty, to JAX's"][1] == "within"
    assert verdicts["the same with a warm disk cache, all but the two largest"] == ("", "not measured")
    assert verdicts["a call of overhead_add8 with `out=`"] == ("0.60 us", "beyond")
    assert verdicts["a call of overhead_add8"] == ("0.40 us", "within")
    assert verdicts["arena + outputs of the training workloads, to JAX's temporaries + outputs"][0].startswith("0.58 ")
    assert verdicts["planned arena to the most that is live at once"][0].startswith("1.020 ")
    behind = {line.what: line.verdict for line in lines(data(factor=1.5))}
    assert behind["2 threads: the greatest ratio"] == "beyond"
    assert behind["1 thread: newton_grad in reverse, to JAX's forward mode"] == "beyond"


def test_the_page_has_every_section_and_workload() -> None:
    text = page(data())
    for heading in (
        "Goals",
        "Steady state, 1 thread",
        "Steady state, 2 threads",
        "limits",
        "First call",
        "Memory",
        "loaded machine",
    ):
        assert heading in text
    for name in WORKLOADS:
        assert text.count(f"| {name} |") >= 3
    assert "geometric mean over the 27: 0.500" in text
    assert "beside 2 processes that never sleep" in text
    assert page(Data({}, None, {})).startswith("# Performance")
    assert "| gemm_128 |" in markdown(run())


@pytest.mark.skipif(not (DATA / "threads1.json").exists(), reason="nothing measured yet")
def test_committed_pages_are_those_of_the_committed_measurements() -> None:
    found = Data.read()
    assert (ROOT / "docs/status/performance.md").read_text(encoding="utf-8") == page(found)
    assert (ROOT / "docs/status/bench.md").read_text(encoding="utf-8") == markdown(found.runs[1])


def test_a_worker_answers_and_outlives_what_it_cannot_do() -> None:
    peer = Peer.start("numpy", 1)
    try:
        assert peer.ready
        assert peer.ask("load", workload="lstm_grad") == {"missing": "no gradients"}
        loaded = peer.ask("load", workload="overhead_add8")
        assert {"first", "first_cpu", "once", "rise", "outputs"} <= set(loaded)
        assert len(peer.ask("burst", seconds=0.0)["wall"]) == 1
        assert "failed" in peer.ask("load", workload="no such workload")
        assert peer.ask("drop") == {}
    finally:
        peer.end()
    assert "failed" in peer.ask("drop")
