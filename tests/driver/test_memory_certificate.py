"""The planned peak is the measured peak: calls in a poisoned, guarded arena with an allocator that counts, against `memory_report()`.

Programs without branches and loops touch exactly what was planned. Others may leave a branch out: they touch no more.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from bench.systems.gradir_system import GradirOps
from bench.workloads import WORKLOADS
from gradir.driver.memory import FunctionMemory
from gradir.lowering import plan_memory
from gradir.lowering.plan_memory import placement
from gradir.runtime.certificate import Measured, measure
from tests.cpu.random_programs import program

RNG = np.random.default_rng(0)


def measured(function: Callable[..., Any], *inputs: Any) -> tuple[FunctionMemory, Measured, int]:
    """The plan, what a call took, and the bytes that follow from sizes of arguments."""
    compiled = gd.jit(function, cache=False, threads=1).compile(*inputs)
    (plan,) = compiled.memory_report().functions
    call = compiled.module[compiled.name]
    return plan, measure(call, *inputs), call.planned_bytes(*inputs) - plan.arena


def certify(function: Callable[..., Any], *inputs: Any) -> FunctionMemory:
    plan, found, workspace = measured(function, *inputs)
    assert found.intact and found.clean and found.leaked == 0
    assert -(-found.arena // 64) * 64 == plan.arena  # offsets are multiples of 64, the last buffer may end before one
    assert found.allocated == plan.scratch + workspace
    return plan


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def mlp(w1: Any, w2: Any, x: Any) -> Any:
    return gd.mean(gd.tanh(gd.tanh(x @ w1) @ w2) ** 2)


def convolutions(k1: Any, k2: Any, x: Any) -> Any:
    return gd.mean(gd.relu(gd.conv(gd.relu(gd.conv(x, k1, padding="SAME")), k2, padding="SAME")) ** 2)


def attention(q: Any, k: Any, v: Any) -> Any:
    return gd.softmax(q @ k.T, -1) @ v


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "mlp": (gd.grad(mlp, argnums=(0, 1)), (array(64, 128), array(128, 64), array(96, 64))),
    "convolutions": (gd.grad(convolutions, argnums=(0, 1)), (array(3, 3, 2, 8), array(3, 3, 8, 8), array(2, 9, 9, 2))),
    "attention": (gd.grad(lambda *a: gd.sum(attention(*a)), argnums=(0, 1, 2)), (array(33, 16), array(47, 16), array(47, 24))),
    "panels": (lambda a, b: gd.tanh(gd.tanh(a @ b) @ b), (array(300, 1024), array(1024, 1024))),
    "sort": (lambda x: gd.sort(gd.sort(x * 2, axis=0) + 1), (array(40, 30),)),
    "nothing": (lambda x: x + 1, (array(5),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_call_takes_what_was_planned(name: str) -> None:
    function, inputs = PROGRAMS[name]
    plan = certify(function, *inputs)
    assert (plan.planned == 0) == (name == "nothing")


def test_scratch_of_kernels_counts() -> None:
    """Wide panels do not fit on the stack: the kernel allocates them, and the report says which."""
    plan, found, _ = measured(*PROGRAMS["panels"][:1], *PROGRAMS["panels"][1])
    assert found.allocated == plan.scratch > 128 << 10
    assert any(step.scratch == plan.scratch for step in plan.work)


def test_run_time_sizes_take_the_bytes_of_their_text() -> None:
    compiled = gd.jit(lambda x: gd.softmax(gd.sort(gd.sort(x * 2) + 1) * 3), cache=False, dynamic={0: (gd.Dim("b"), 8)}).compile(
        array(3, 8)
    )
    call = compiled.module[compiled.name]
    for rows in (0, 1, 17):
        found = measure(call, array(rows, 8))
        assert found.intact and found.clean and found.allocated == call.planned_bytes(array(rows, 8)) - call.spec.arena_bytes


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_take_no_more_than_planned(seed: int) -> None:
    """Programs with loops in loops and branches; a tape's length only the run knows, so that is not compared."""
    choices = np.random.default_rng(seed)
    made = program(lambda n: int(choices.integers(n)))
    plan, found, _ = measured(made.function(), *made.inputs(seed))
    assert found.intact and found.clean and found.leaked == 0 and found.arena <= plan.arena
    if not plan.run_time:
        assert found.allocated <= plan.scratch


def test_a_plan_that_lies_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers on top of each other, and an arena that is smaller than what is used."""
    function, inputs = PROGRAMS["mlp"]
    place = placement.place

    def short(intervals: Any) -> Any:
        offsets, total = place(intervals)
        return {i: offset + 64 for i, offset in offsets.items()}, total

    monkeypatch.setattr(plan_memory, "place", short)
    monkeypatch.setattr(plan_memory, "host", lambda intervals, outputs: {})
    _, found, _ = measured(function, *inputs)
    assert not found.intact


def workload(name: str) -> tuple[Callable[..., Any], list[np.ndarray]]:
    w, ops = WORKLOADS[name], GradirOps()

    def function(*inputs: Any) -> Any:
        if w.kind in ("forward", "step"):
            return w.fn(ops, *inputs)
        return gd.value_and_grad(lambda *p: w.fn(ops, *p, *inputs[w.params :]), tuple(range(w.params)))(*inputs[: w.params])

    return function, w.inputs()


@pytest.mark.parametrize("name", ["mlp_train", "digits_mlp_step"])
def test_workloads(name: str) -> None:
    function, inputs = workload(name)
    certify(function, *inputs)


@pytest.mark.full
@pytest.mark.parametrize("name", ["digits_cnn_step", "resnet_train", "block_train", "lstm_grad", "resnet_infer", "block_infer"])
def test_large_workloads(name: str) -> None:
    function, inputs = workload(name)
    plan = certify(function, *inputs)
    assert plan.arena <= 1.05 * plan.peak


def test_the_report_as_data_and_as_a_page() -> None:
    function, inputs = PROGRAMS["mlp"]
    report = gd.jit(function, cache=False).compile(*inputs).memory_report()
    (plan,) = report.functions
    (data,) = report.dict()["functions"]
    assert data["arena"] == plan.arena and len(data["buffers"]) == len(plan.buffers) and max(data["timeline"]) == plan.peak
    assert data["timeline"] == [plan.live_at(step) for step in range(plan.steps)]
    assert '"planned"' in report.json()
    page = report.html()
    assert page.count("<rect") == sum(b.place == "arena" for b in plan.buffers) and plan.buffers[0].location in page
    assert any(b.place.startswith("result ") for b in plan.buffers)
