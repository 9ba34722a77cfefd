"""Training steps on the device against the CPU, from Python and with gradir-run. GRADIR_TEST_DEVICE=cuda runs the same on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradir as gd
from bench.gpu.training import STEPS
from gradir.ir.text import print_module
from gradir.tools.run import run
from tests.cuda import DEVICE


def leaves(result: Any) -> list[Any]:
    if isinstance(result, list | tuple):
        return [array for part in result for array in leaves(part)]
    return [result]


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_that_of_the_cpu(name: str) -> None:
    step, arguments = STEPS[name](1)
    wanted = leaves(gd.jit(step)(*arguments))
    on_device = gd.jit(step, target=DEVICE)
    device = gd.device(DEVICE)
    before = device.synchronisations
    params, *data = gd.device_put(list(arguments), DEVICE)
    loss, updated = on_device(params, *data)
    assert device.synchronisations == before, "a step waits for nothing"
    for found, value in zip(leaves((loss, updated)), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(found), value, rtol=1e-4, atol=1e-4)
    again, _ = on_device(updated, *data)  # what a step gives is what the next one takes
    assert float(again) < float(loss)


@pytest.mark.parametrize("name", ["mlp", pytest.param("lstm", marks=pytest.mark.full)])
def test_a_step_with_gradir_run(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step, arguments = STEPS[name](1)
    jitted = gd.jit(step)
    file = tmp_path / "step.mlir"
    file.write_text(print_module(jitted.lower(*arguments)))
    words: list[str] = []
    for k, array in enumerate(leaves(list(arguments))):
        np.save(tmp_path / f"{k}.npy", array)
        words.append(f"--input=@{tmp_path / f'{k}.npy'}")
    printed: list[str] = []
    for target in ("cpu", DEVICE):
        assert run([str(file), f"--target={target}", *words]) == 0
        printed.append(capsys.readouterr().out)
    loss, on_device = (float(text.splitlines()[0].split("=")[-1]) for text in printed)
    assert loss == pytest.approx(on_device, rel=1e-4) and len(printed[0].splitlines()) == len(printed[1].splitlines())
