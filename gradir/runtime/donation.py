"""Arguments whose memory a call takes over: the result that lies there is written over them.

An aliased result of a compiled function is the memory of its argument. Where the caller's memory cannot be that (read-only, another
layout, another array in `out=`), a copy of the argument takes its place: the program's meaning does not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradir.errors import GradirError
from gradir.runtime.buffer import Buffer
from gradir.runtime.manifest import FunctionSpec
from gradir.runtime.signature import overlaps

Array = np.ndarray[Any, np.dtype[Any]]


def take_over(
    spec: FunctionSpec, values: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Array | None]
) -> tuple[list[Any], list[Array]]:
    """The inputs and outputs to call with: each aliased pair is one array. `outputs` holds None where the argument's memory is to be used.

    `values` is what the caller passed for `inputs`; a `Buffer` among the donated ones is unusable from here on, a frozen one stays as
    it is. Raises GradirError RT022 when the memory of a donated argument is that of another argument too.
    """
    arrays, results = list(inputs), list(outputs)
    for argument, result in spec.aliases:
        array, place = arrays[argument], results[result]
        others = [other for k, other in enumerate(inputs) if k != argument]
        if place is None and overlaps(array, others):
            twin = next(k for k, other in enumerate(inputs) if k != argument and overlaps(array, [other]))
            raise shared_memory(spec, argument, twin)
        if place is None:
            place = array if array.flags.writeable else np.array(array)
        else:
            place[...] = array.reshape(place.shape)
        arrays[argument] = place
        shape = _static_shape(spec, result, place)
        results[result] = place if place.shape == shape else place.reshape(shape)
        if isinstance(values[argument], Buffer) and not values[argument].is_frozen:
            values[argument].give_away(f"argument '{spec.inputs[argument].name}' of a call of @{spec.name}")
    return arrays, [array for array in results if array is not None]


def spared(spec: FunctionSpec, values: Sequence[Any]) -> list[Any]:
    """The arguments for calls that nobody asked for, those of a measurement: copies stand for what a call would take over."""
    donated = {argument for argument, _ in spec.aliases}
    return [np.array(value) if k in donated else value for k, value in enumerate(values)]


def _static_shape(spec: FunctionSpec, result: int, place: Array) -> tuple[int, ...]:
    """The result's shape; a pair with sizes of run time has one type."""
    sizes = [dim for dim in spec.outputs[result].shape if isinstance(dim, int)]
    return tuple(sizes) if len(sizes) == len(spec.outputs[result].shape) else place.shape


def shared_memory(spec: FunctionSpec, argument: int, twin: int) -> GradirError:
    """The error for a donated argument that overlaps another one."""
    name, other = spec.inputs[argument].name, spec.inputs[twin].name
    return GradirError(
        f"the memory of '{name}' is given away and is the memory of '{other}' too",
        part="runtime",
        code="RT022",
        function=f"@{spec.name}",
        expected=f"'{name}' (donate=) in an array of its own",
        found=f"'{other}' overlaps it",
        hint=f"pass a copy of one of them, or compile without donating '{name}'",
    )


__all__ = ["shared_memory", "spared", "take_over"]
