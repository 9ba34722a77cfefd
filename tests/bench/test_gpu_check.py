"""The script for GPUs, on the emulated device: that all of it runs, that a wrong result is one, that a table and a file come out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.gpu import check as script
from bench.gpu.cases import checked, timed


def test_parts_of_it_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "figures.json"
    assert script.main(["--device=cuda:emulated", "--only=check,speed,overhead", "--families=softmax", f"--out={out}"]) == 0
    figures = json.loads(out.read_text())
    assert figures["right"] == 6 and not figures["wrong"] and figures["overhead_us"]["gradir"] > 0
    (row,) = figures["speed"]
    assert row["name"] == "softmax 8x64" and row["seconds"] > 0 and row["bound"] == pytest.approx(8 * 8 * 64 / 4.8e12)
    text = capsys.readouterr().out
    assert "6 right, 0 wrong" in text and "softmax 8x64" in text and "missing: torch" in text


@pytest.mark.full
def test_all_of_it_runs(tmp_path: Path) -> None:
    assert script.main(["--device=cuda:emulated", f"--out={tmp_path / 'figures.json'}"]) == 0


def test_a_wrong_result_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    right = next(case for case in checked("tiny") if case.name.startswith("added"))
    wrong = replace(right, name="spoiled", reference=lambda x, y: x + y + 1e-2 * np.abs(x))
    broken = replace(right, name="broken", function=lambda x, y: x + y[:1, :1, None])
    monkeypatch.setattr(script, "checked", lambda scale: [right, wrong, broken])
    assert script.main(["--device=cuda:emulated", "--only=check", f"--out={tmp_path / 'figures.json'}"]) == 1
    figures: dict[str, Any] = json.loads((tmp_path / "figures.json").read_text())
    assert figures["right"] == 1 and [row["case"] for row in figures["wrong"]] == ["memory spoiled", "memory broken"]
    assert "WRONG memory spoiled: differs by" in capsys.readouterr().out


def test_without_the_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(["--device=cuda:77", f"--out={tmp_path / 'figures.json'}"]) == 2
    assert "RT070" in capsys.readouterr().err


def test_what_a_gpu_has_to_show() -> None:
    groups = {case.group for case in timed("full")}
    assert groups == {"gemm", "memory", "attention", "convolution"}
    assert {"bf16 8192x8192x8192", "f16 512x512x512"} <= {case.name for case in timed("full") if case.group == "gemm"}
    for scale in ("tiny", "full"):
        cases = [*checked(scale), *timed(scale)]  # type: ignore[arg-type]
        assert len({(case.group, case.name) for case in checked(scale)}) == len(checked(scale))  # type: ignore[arg-type]
        assert all(len(case.shapes) == len(case.dtypes) for case in cases)
