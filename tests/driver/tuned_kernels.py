"""Kernels for the tests of the tuner, and measurements whose times are made up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gradir as gd
from gradir.dialects.kernel import KERNEL_ATTRIBUTE
from gradir.dialects.upstream.func import FuncOp
from gradir.driver.compile import compile_watched
from gradir.driver.options import Hooks
from gradir.driver.tuning.alternatives import Subject, subject_of
from gradir.driver.tuning.records import Choice, Record
from gradir.driver.tuning.trials import Job, Outcome
from tests.driver.test_explain import f32

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


RECORD = Record("k" * 32, "contraction_0", "m.py:1:1", Choice("contraction", {"tile": (6, 16)}), BLAS, 2.0, 1.0, 9, 1)
