"""Many samples in one module: compiled together, evaluated one by one, compared by the rules of docs/numerics.md, "Comparison"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block

from gradir.autodiff.differentiate import Differentiate
from gradir.dialects import ad
from gradir.dialects.nd.base import Sample
from gradir.driver.compile import compile_module
from gradir.ir.builder import Builder, new_function
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, verify_module
from gradir.reference import compare, expectations
from gradir.runtime.module import Module

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """One public function of a batch and the arrays that it is called with."""

    title: str
    function: str
    inputs: tuple[Array, ...]


@dataclass(frozen=True)
class Batch:
    """A module whose public functions are cases."""

    module: ModuleOp
    cases: tuple[Case, ...]

    def compiled(self, threads: int = 1) -> Module:
        """Machine code of all of them, from nothing."""
        return compile_module(self.module, cache=False, threads=threads)


def forward(samples: Sequence[Sample]) -> Batch:
    """The samples themselves: sample `k` is `@f<k>`."""
    texts = [sample.text.replace("@f(", f"@f{k}(") for k, sample in enumerate(samples)]
    cases = [Case(sample.name, f"f{k}", sample.inputs()) for k, sample in enumerate(samples)]
    module = parse_module("\n".join(texts))
    verify_module(module)
    return Batch(module, tuple(cases))


def backward(samples: Sequence[Sample]) -> Batch:
    """Their derivatives: `@vjp<k>(args, cotangents) -> (results, gradients)` for all float arguments, kinks and singular points included."""
    differentiable = [sample for sample in samples if _floats(sample)]
    module = forward(differentiable).module
    functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}
    cases: list[Case] = []
    for k, sample in enumerate(differentiable):
        function = functions[f"f{k}"]
        results = function.function_type.outputs.data
        block = Block(arg_types=[*function.function_type.inputs.data, *results])
        request = ad.VjpOp.make(f"f{k}", list(block.args), _floats(sample), results)
        block.add_op(request)
        Builder(block).op(ReturnOp, list(request.results))
        module.body.block.add_op(new_function(f"vjp{k}", block, [result.type for result in request.results]))
        cases.append(Case(sample.name, f"vjp{k}", (*sample.inputs(), *_cotangents(module, f"f{k}", sample.inputs()))))
    Differentiate().apply(module, PassContext())
    verify_module(module)
    return Batch(module, tuple(cases))


def retyped(samples: Sequence[Sample], element: str, dtype: Any) -> list[Sample]:
    """The samples in f64 once more in another float type."""

    def cast(sample: Sample) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return tuple(array.astype(dtype) if array.dtype == np.float64 else array for array in sample.inputs())

    return [
        replace(sample, name=f"{sample.name}, {element}", text=sample.text.replace("f64", element), inputs=partial(cast, sample))
        for sample in samples
        if "f64" in sample.text and "complex" not in sample.text
    ]


def _floats(sample: Sample) -> list[int]:
    """The arguments to differentiate by: order and exponent of these two functions have no derivative (AD001)."""
    first = 1 if "nd.zeta" in sample.text or "nd.polygamma" in sample.text else 0
    return [k for k, array in enumerate(sample.inputs()) if k >= first and array.dtype.kind not in "iub"]


def _cotangents(module: ModuleOp, function: str, inputs: Sequence[Array]) -> list[Array]:
    """One of the shape of every result: multiples of 1/8, positive and negative, exact in every float type."""
    rng = np.random.default_rng(0)
    results = [expected.value for expected in expectations(module, function, inputs, samples=0)]
    return [
        np.zeros(result.shape, result.dtype)
        if result.dtype.kind in "iub"
        else (rng.integers(-16, 17, result.shape) / 8).astype(result.dtype)
        for result in results
    ]


def differences(batch: Batch, compiled: Module, *, signed_zeros: bool = False) -> list[str]:
    """What the compiled functions compute otherwise than the reference evaluator says; empty when all agree."""
    return [problem for case in batch.cases for problem in _differences(batch.module, case, compiled, signed_zeros)]


def _differences(module: ModuleOp, case: Case, compiled: Module, signed_zeros: bool) -> list[str]:
    expected = expectations(module, case.function, case.inputs)
    kept = [array.tobytes() for array in case.inputs]
    found = compiled[case.function].flat(*case.inputs)
    problems: list[str] = []
    for k, (want, got) in enumerate(zip(expected, found, strict=True)):
        where = f"{case.title} (@{case.function}): result {k}"
        if (difference := compare(want, got)) is not None:
            problems.append(f"{where} at {difference.index}: expected {difference.expected}, found {difference.found}")
        elif signed_zeros and got.dtype.kind not in "iubc" and (wrong := _wrong_zeros(want.value, got)).any():
            problems.append(f"{where} at {np.argwhere(wrong)[0].tolist()}: a zero of the wrong sign")
    if [array.tobytes() for array in case.inputs] != kept:
        problems.append(f"{case.title} (@{case.function}): an input was written")
    return problems


def _wrong_zeros(expected: Array, found: Array) -> Array:
    wide, other = expected.astype(np.float64), found.astype(np.float64)
    return np.asarray((wide == 0) & (np.signbit(wide) != np.signbit(other)))
