"""The arguments and results of a program as the places that native code recognises (`gradir.runtime.dispatch`).

`entry_of` describes one call that went well; the next one like it needs no Python. None where native code has to leave it to Python: an
argument that is no plain array, number or numpy scalar, or a program that is watched or has sizes to compute.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gradir.frontends.python.pytrees import LEAF, Structure, flatten
from gradir.runtime.dispatch import ARRAY, Entry, Place
from gradir.runtime.dtypes import dtype_name
from gradir.runtime.manifest import TensorSpec
from gradir.runtime.module import Function

NUMBERS: dict[type, str] = {float: "f32", int: "i32", bool: "i1"}
"""Python numbers that native code converts, and to what."""

SIMPLE = (int, str, bool, bytes)
"""Types of static arguments that native code compares; others, and floats, have to be the same object."""


class _NotDirect(Exception):
    """Native code cannot take this argument."""


def entry_of(
    function: Function, outputs: Structure, args: Sequence[Any], kwargs: Mapping[str, Any], static: frozenset[int | str] = frozenset()
) -> Entry | None:
    """The entry for calls like `(*args, **kwargs)`, which `function` took; `static` names the arguments that select the program."""
    if function.plan is None:
        return None
    leaves = iter(function.spec.inputs)
    try:
        positional = [_static(x) if k in static else _place(x, leaves) for k, x in enumerate(args)]
        named = {name: _static(kwargs[name]) if name in static else _place(kwargs[name], leaves) for name in sorted(kwargs)}
    except _NotDirect:
        return None
    return Entry(function.plan, positional, named, result_place(outputs), list(kwargs))


def result_place(structure: Structure) -> Place:
    """The place of a result."""
    kind = structure.kind
    if kind is LEAF:
        return ARRAY
    if kind is type(None):
        return Place("none")
    return _container(kind, structure.data, map(result_place, structure.children))


def _container(kind: type, data: tuple[Any, ...], children: Iterable[Place]) -> Place:
    parts = tuple(children)
    if kind is dict or kind is list:
        return Place(kind.__name__, kind, data if kind is dict else (), parts)
    return Place("tuple", kind, (), parts) if issubclass(kind, tuple) else Place("attributes", kind, data, parts)


def _place(value: Any, specs: Iterator[TensorSpec]) -> Place:
    """`value` as `pytrees.flatten` takes it apart; its leaves are the next of `specs`."""
    kind = type(value)
    if value is None:
        return Place("none")
    if kind is dict:
        keys = flatten(value)[1].data
        return _container(dict, keys, [_place(value[key], specs) for key in keys])
    if kind in (list, tuple) or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        return _container(kind, (), [_place(part, specs) for part in value])
    if dataclasses.is_dataclass(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
        return _container(kind, names, [_place(getattr(value, name), specs) for name in names])
    dtype = next(specs).dtype
    if kind is np.ndarray:
        return ARRAY
    if NUMBERS.get(kind) == dtype:
        return Place("number", kind)
    if isinstance(value, np.generic) and dtype_name(value.dtype) == dtype:
        return Place("scalar", kind)
    raise _NotDirect


def _static(value: Any) -> Place:
    return Place("value" if type(value) in SIMPLE else "same", value)
