"""Programs of the tensor dialect as PTX: what a GPU would get, run in the emulator, against the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.driver.emulate import PtxLauncher, evaluate_as_ptx
from gradir.driver.lower import lower
from gradir.ir.structure import public_functions
from tests.ptx.emulated import check_emulated
from tests.targets.gpu_programs import GpuProgram, programs, sample
from tests.targets.kernel_programs import PROGRAMS, KernelProgram


def leaves(result: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(result, list | tuple):
        return [array for part in result for array in leaves(part)]
    return [np.asarray(result)]


def mlp_step(params: Any, x: Any, y: Any) -> Any:
    def loss(params: Any) -> Any:
        w1, b1, w2, b2 = params
        return gd.mean(gd.cross_entropy(gd.matmul(gd.tanh(gd.matmul(x, w1) + b1), w2) + b2, y))

    value, slopes = gd.value_and_grad(loss)(params)
    return value, [p - 0.1 * slope for p, slope in zip(params, slopes, strict=True)]


@pytest.mark.parametrize("seed", [None, 1])
def test_training_step_of_an_mlp(seed: int | None) -> None:
    random = np.random.default_rng(0)
    params = [(random.standard_normal(s) * 0.3).astype(np.float32) for s in ((23, 37), (37,), (37, 10), (10,))]
    x, y = random.standard_normal((33, 23)).astype(np.float32), random.integers(0, 10, 33).astype(np.int32)
    step = gd.jit(mlp_step)
    expected = leaves(step(params, x, y))
    module = lower(step.lower(params, x, y), target="cuda")
    found = evaluate_as_ptx(module, "mlp_step", [*params, x, y], PtxLauncher(module, seed))
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_programs_of_every_strategy(program: KernelProgram) -> None:
    inputs = program.inputs()
    function = gd.jit(program.function)
    expected = leaves(function(*inputs))
    module = lower(function.lower(*inputs), target="cuda")
    (entry,) = public_functions(module)
    found = evaluate_as_ptx(module, entry.sym_name.data, inputs)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(b.astype(np.float64), a.astype(np.float64), rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("program", sample(), ids=lambda p: p.name)
def test_sample_of_the_families(program: GpuProgram) -> None:
    check_emulated(program, [None, 1])


@pytest.mark.full
@pytest.mark.parametrize("program", programs(), ids=lambda p: p.name)
def test_every_member_of_the_families(program: GpuProgram) -> None:
    check_emulated(program, [None, 1, 2])


def test_the_sample_sees_every_type_and_size() -> None:
    chosen = sample()
    assert {p.size for p in chosen} == {p.size for p in programs()}
    assert {p.dtype for p in chosen} == {p.dtype for p in programs()}
