"""Which op is it? After a pass changed a result: the first op after it that no longer computes what stood at its place in the source.

Both programs run once more with every value written down under its location and type. A pass may rewrite freely, so ops are not paired one
by one: a place is to blame if a value that was computed there before is computed there no more, and the last op of that place is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult

from gradir.errors import GradirError
from gradir.ir.locations import is_unknown
from gradir.ir.passes import location_text
from gradir.reference.machine import Value
from gradir.reference.noise import is_float
from gradir.reference.run import run

Array = np.ndarray[Any, Any]

Place = tuple[str, str]
"""Location and type of a value."""

LIMIT = 64
"""Values kept of one place: a loop computes many."""

SHOWN = 6
"""Elements of an operand that a message shows where no single one belongs to the element in question."""

_NEAR = {8: 1e-12, 4: 1e-5, 2: 3e-2}
"""Bytes of a float -> how far apart, over the largest element, two ways of computing it may be."""


@dataclass(frozen=True)
class Computed:
    """One execution of an op: its operands and one of its results."""

    op: Operation
    operands: tuple[Value, ...]
    result: Array


@dataclass
class Trace:
    """A watcher that writes down what every op computed."""

    places: dict[Place, list[Computed]] = field(default_factory=dict[Place, list[Computed]])
    last: dict[Operation, Computed] = field(default_factory=dict[Operation, Computed])

    def __call__(self, op: Operation, operands: Sequence[Value], results: Sequence[Value]) -> Sequence[Value]:
        for result, value in zip(op.results, results):
            if isinstance(value, np.ndarray | np.generic):
                self._note(op, operands, result, np.asarray(value))
        return results

    def _note(self, op: Operation, operands: Sequence[Value], result: OpResult, value: Array) -> None:
        computed = self.last[op] = Computed(op, tuple(operands), value)
        if not is_unknown(op.location):
            row = self.places.setdefault((location_text(op.location), str(result.type)), [])
            if len(row) < LIMIT:
                row.append(computed)


@dataclass(frozen=True)
class Blame:
    """The op that computes another value than stood at its place: where, and from what. `expected` is empty where nothing is known."""

    op: Operation
    text: str


def blame(
    before: ModuleOp, after: ModuleOp, entry: str, inputs: Sequence[Array | None], shapes: Sequence[Sequence[int]], seed: int, fallback: Any
) -> Blame | None:
    """The first op of `after` that computes something else than `before` did at that place; else `fallback`, with its operands."""
    traces = Trace(), Trace()
    for module, trace in zip((before, after), traces):
        with suppress(GradirError):  # what ran until then is written down
            run(module, entry, inputs, seed=seed, watch=trace, result_shapes=shapes)
    found = _first_difference(traces[0].places, traces[1].places)
    if found is not None:
        return found
    computed = traces[1].last.get(fallback)
    return Blame(fallback, _operands(computed, None)) if computed is not None else None


def _first_difference(before: Mapping[Place, list[Computed]], after: Mapping[Place, list[Computed]]) -> Blame | None:
    for place, row in after.items():
        known = before.get(place, ())
        if len(known) >= LIMIT or len(row) >= LIMIT:
            continue  # a loop whose later values are not known
        for one in known:
            if not any(_near(one.result, other.result) for other in row):
                return _difference(one, row[-1])
    return None


def _near(a: Array, b: Array) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return a.shape == b.shape and bool(np.array_equal(a, b))
    return not _apart(a, b).any()


def _apart(a: Array, b: Array) -> Array:
    """Which elements differ by more than rounding."""
    same = np.asarray(a == b)
    if not is_float(a):
        return ~same
    x, y = (v.astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in (a, b))
    with np.errstate(all="ignore"):
        size = float(np.max(np.abs(x[np.isfinite(x)]), initial=0.0))
        near = np.abs(x - y) <= _NEAR.get(a.dtype.itemsize // (2 if a.dtype.kind == "c" else 1), 3e-2) * size
    return ~(same | near | (np.isnan(x) & np.isnan(y)))


def _difference(expected: Computed, found: Computed) -> Blame:
    wrong = np.argwhere(_apart(expected.result, found.result)) if expected.result.shape == found.result.shape else np.zeros((0, 0))
    index = tuple(int(i) for i in wrong[0]) if len(wrong) else None
    if index is None:
        return Blame(found.op, _operands(found, None))
    text = f"{found.op.name} gives {found.result[index]} where {expected.result[index]} was computed before"
    return Blame(found.op, f"{text}{f', at element {list(index)}' if index else ''}; {_operands(found, index)}")


def _operands(computed: Computed, index: tuple[int, ...] | None) -> str:
    """The operands' values: at `index` where they have the shape of the result, else their first elements."""
    shown = [f"#{k} = {_value(value, computed.result, index)}" for k, value in enumerate(computed.operands)]
    return f"operands of {computed.op.name}: {', '.join(shown) or 'none'}"


def _value(value: Value, result: Array, index: tuple[int, ...] | None) -> str:
    if not isinstance(value, np.ndarray | np.generic):
        return f"a {type(value).__name__.lower()}"
    array = np.asarray(value)
    if index is not None and array.shape == result.shape:
        return str(array[index])
    if array.ndim == 0:
        return str(array[()])
    first = ", ".join(map(str, array.reshape(-1)[:SHOWN]))
    return f"{array.dtype}{list(array.shape)}[{first}{', ...' if array.size > SHOWN else ''}]"
