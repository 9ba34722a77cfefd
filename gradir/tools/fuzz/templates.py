"""Uses of each op, from its samples: the function of a sample, in other element types and sizes if the verifier agrees.

Relies on `samples()` alone, so that an op takes part in fuzzing from the day it has samples. `unusable` says which ops take no part,
and why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import AnyFloat, IntegerType, ModuleOp, SymbolRefAttr, TensorType, bf16, f16, f32, f64, i1
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from gradir.dialects import nd
from gradir.dialects.facets import samples_of
from gradir.dialects.types import Dim, element_type, shape_of
from gradir.dialects.upstream.func import FuncOp
from gradir.errors import GradirError
from gradir.ir.diagnostics import Engine
from gradir.ir.text import parse_module
from gradir.ir.verifier import verify
from gradir.tools.reduce.edits.types import substitute

SIZES = (0, 1, 2, 3, 5, 7, 8, 17)
"""Sizes that random programs have: none, one, primes, a register and one more."""

FLOATS: tuple[Attribute, ...] = (f32, f64, f16, bf16)
INTEGERS: tuple[Attribute, ...] = (*(element_type(np.dtype(f"{sign}int{width}")) for sign in ("", "u") for width in (8, 16, 32, 64)), i1)
"""Element types of programs."""

LARGEST = 4096
"""Elements of a value at most: every program runs in the evaluator several times."""

Array = np.ndarray[Any, Any]

_UNSUITED: Mapping[str, str] = {
    "nd.yield": "a terminator: it stands in the regions of other ops",
}


@dataclass(frozen=True)
class Template:
    """One sample: `module` holds the one function `@f`, `inputs` are the sample's arrays."""

    op: str
    sample: str
    module: ModuleOp = field(compare=False)
    inputs: tuple[Array, ...] = field(compare=False)

    @property
    def function(self) -> FuncOp:
        """`@f`."""
        return function_of(self.module)


def function_of(module: ModuleOp) -> FuncOp:
    """The first function of a module."""
    return next(op for op in module.body.block.ops if isinstance(op, FuncOp))


@cache
def ops() -> tuple[str, ...]:
    """The ops that may take part; whether they do is known once their samples are read."""
    return tuple(kind.name for kind in nd.Nd.operations if kind.name not in _UNSUITED and _samples(kind.name)[0])


@cache
def templates_of(op: str) -> tuple[Template, ...]:
    """The usable samples of an op, read when first asked for: 7 ms each."""
    found: list[Template] = []
    for sample in _samples(op)[0]:
        with suppress(GradirError, _UnusableError):
            found.append(_template(op, sample))
    return tuple(found)


@cache
def unusable() -> Mapping[str, str]:
    """Op name -> why random programs do not use it. Reads all samples: 5 s."""
    reasons: dict[str, str] = {}
    for kind in nd.Nd.operations:
        if kind.name in _UNSUITED:
            reasons[kind.name] = _UNSUITED[kind.name]
        elif not templates_of(kind.name):
            reasons[kind.name] = _reason(kind.name)
    return reasons


def _reason(op: str) -> str:
    samples, missing = _samples(op)
    for sample in samples:
        try:
            _template(op, sample)
        except (GradirError, _UnusableError) as error:
            return str(error).splitlines()[0]
    return missing or "no samples"


@cache
def _samples(op: str) -> tuple[Sequence[nd.Sample], str]:
    """The samples of an op, and why there are none."""
    kind = next(kind for kind in nd.Nd.operations if kind.name == op)
    try:
        return samples_of(kind), ""
    except ImportError as error:  # a family without a module of samples
        return (), f"no samples: {error}"


class _UnusableError(Exception):
    """A sample that does not fit into another function."""


def _template(op: str, sample: nd.Sample) -> Template:
    module = parse_module(sample.text)
    functions = [inner for inner in module.body.block.ops if isinstance(inner, FuncOp)]
    if len(functions) != 1:
        raise _UnusableError(f"sample '{sample.name}' has {len(functions)} functions")
    if any(
        isinstance(value, SymbolRefAttr) and inner.name != "nd.custom_call"
        for inner in module.walk()
        for value in inner.properties.values()
    ):
        raise _UnusableError(f"sample '{sample.name}' names a symbol")
    return Template(op, sample.name, module, sample.inputs())


def varied(template: Template, rng: np.random.Generator) -> FuncOp:
    """The function of a template, or the same in other sizes and element types if that verifies."""
    for _ in range(3):
        module = template.module.clone()
        kinds = _kinds(module)
        sizes = {size: _other_size(rng, size) for kind in kinds if isinstance(kind, TensorType) for size in shape_of(kind)}
        elements = _other_elements(rng, kinds)
        try:
            substitute(
                module,
                sizes=lambda n, sizes=sizes: sizes.get(n, n),
                elements=lambda e, elements=elements: elements.get(e, e),
                numbers=bool(rng.integers(2)),
            )
        except (VerifyException, GradirError, ValueError, OverflowError, KeyError, AttributeError, TypeError):
            continue  # a constant that has no counterpart in that type
        if small(module) and verify(module, Engine(), limit=1):
            return function_of(module)
    return template.function


def small(module: ModuleOp) -> bool:
    """Whether no value has more than `LARGEST` elements."""
    for kind in _kinds(module):
        if isinstance(kind, TensorType):
            count = 1
            for size in shape_of(kind):
                count *= size if isinstance(size, int) else 8
            if count > LARGEST:
                return False
    return True


def _kinds(module: Operation) -> list[Attribute]:
    values = [result.type for op in module.walk() for result in op.results]
    values += [a.type for op in module.walk() for region in op.regions for block in region.blocks for a in block.args]
    return list(dict.fromkeys(values))


def _other_size(rng: np.random.Generator, size: Dim) -> Dim:
    return int(rng.choice(SIZES)) if isinstance(size, int) and rng.random() < 0.5 else size


def _other_elements(rng: np.random.Generator, kinds: Sequence[Attribute]) -> dict[Attribute, Attribute]:
    """A map of element types: floats to floats, integers to integers, now and then anything."""
    found: dict[Attribute, Attribute] = {}
    for kind in kinds:
        if not isinstance(kind, TensorType):
            continue
        element = cast("Attribute", kind.element_type)
        if element in found or rng.random() < 0.5:
            continue
        if isinstance(element, AnyFloat) or rng.random() < 0.1:
            found[element] = FLOATS[int(rng.integers(len(FLOATS)))]
        elif isinstance(element, IntegerType):
            found[element] = INTEGERS[int(rng.integers(len(INTEGERS)))]
    return found
