"""`explain` of programs for CUDA, and launches that are timed one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import gradir as gd
from gradir.dialects.target.cuda_facts import CARDS
from gradir.driver.explain.cuda import explain_cuda, roofline
from gradir.errors import GradirError
from gradir.ir.text import print_module
from gradir.runtime.cuda.profile import recorded
from gradir.targets.nvptx import find_ptxas
from gradir.tools.run import run

X = np.random.default_rng(0).random((8, 16), np.float32)


def layers(x: Any) -> Any:
    return gd.fori_loop(0, 3, lambda i, v: gd.softmax(gd.matmul(v, gd.transpose(v)) @ v), x)


def test_what_runs_and_what_it_costs() -> None:
    found = gd.jit(layers, target="cuda:emulated").compile(X).explain(X, gpu="a100")
    product = next(row for row in found.rows if row.kind == "contraction" and row.calls == 3)
    assert product.flops == 3 * 2 * 8 * 8 * 16 and product.seconds and product.seconds > 0
    assert product.bound == pytest.approx(3 * max(2 * 8 * 8 * 16 / 19.5e12, product.bytes / 3 / 2.039e12))  # type: ignore[operator]
    launch = product.launches[0]
    assert launch.blocks and launch.block[0] and "test_explain.py" in product.location
    if find_ptxas() is not None:
        assert launch.registers and launch.spills == 0 and launch.occupancy and launch.limit
    text = str(found)
    assert "bounds of a a100" in text and product.name in text and "cuda:emulated" in text
    assert json.loads(found.to_json())["kernels"][0]["launches"]


def test_without_the_device_bounds_remain() -> None:
    found = explain_cuda(gd.jit(layers).lower(X), target="cuda:77:sm_80")
    assert found.runs == 0 and "not run: no such GPU" in str(found) and found.bound > 0


def test_the_longer_of_two_limits_is_the_bound() -> None:
    card = CARDS["h200"]
    assert roofline(card, 989_400_000_000_000, 1, "bf16") == (1.0, "compute")
    assert roofline(card, 1, 4_800_000_000_000, "f32") == (1.0, "memory")
    for name in ("abacus", None):
        with pytest.raises(GradirError) as caught:
            explain_cuda(gd.jit(layers).lower(X), gpu_card=cast("str", name))
        assert caught.value.code == "RT068" and caught.value.found == str(name)


def test_schedules_are_not_tuned() -> None:
    with pytest.raises(GradirError) as caught:
        gd.jit(layers, target="cuda:emulated", tune=1.0)(X)
    assert caught.value.code == "RT069"


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(print_module(gd.jit(gd.softmax).lower(X)))
    assert run([str(file), "--target=cuda:emulated", f"--explain={tmp_path / 'page'}", "--gpu=h100"]) == 0
    assert "bounds of a h100" in capsys.readouterr().out
    assert json.loads((tmp_path / "page" / "explain.json").read_text())["card"] == "h100"
    gd.compile(gd.softmax, X, target="cuda:emulated").save(tmp_path / "f.gradir")
    assert run([str(tmp_path / "f.gradir"), "--target=cuda:emulated", "--explain"]) == 0
    assert "for sm_80" in capsys.readouterr().out
    np.save(tmp_path / "x.npy", X)
    assert run([str(tmp_path / "f.gradir"), "--target=cuda:emulated", f"--input=@{tmp_path / 'x.npy'}"]) == 0


def test_launches_are_recorded_in_order() -> None:
    f, device = gd.jit(layers, target="cuda:emulated"), gd.device("cuda:emulated")
    f(X)
    with recorded(device) as recording:
        f(X)
    names = [timed.kernel for timed in recording.launches]
    assert len(names) >= 9 and len(set(names)) < len(names)
    assert all(timed.seconds >= 0 and timed.block[0] > 0 for timed in recording.launches)
    assert device.graphs
