"""Callables that go straight into compiled code: which arguments belong to which function, as tables that native code reads.

A `Place` describes a place in the arguments or the result of a call. A `Dispatch` lists entries, (places, plan) with the newest first; its
`builtin` is a native function that finds the entry of a call by looking at the arguments and hands everything else to a Python callable.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from gradir.runtime.native.arguments import KINDS
from gradir.runtime.native.library import native
from gradir.runtime.plan import CallPlan, capsule, python_function

METH_FASTCALL, METH_KEYWORDS = 0x80, 0x02
ENTRIES = 8
"""So many entries are tried before Python looks."""

NUMBER_CODES: dict[type, int] = {float: 0, int: 1, bool: 2}
"""Python numbers that become f32, i32 and i1."""


@dataclass(frozen=True)
class Place:
    """One place of a call: its kind (`KINDS`), what tells it apart (a type or an object), keys, children."""

    kind: str
    what: Any = None
    keys: tuple[Any, ...] = ()
    children: tuple[Place, ...] = ()

    @property
    def nodes(self) -> int:
        """How many places it has, itself included."""
        return 1 + sum(child.nodes for child in self.children)


ARRAY = Place("array")


def tuple_of(count: int) -> Place:
    """A tuple of so many arrays."""
    return Place("tuple", tuple, (), (ARRAY,) * count)


class DirectCall:
    """Objects whose `__call__` is a slot of each of them, so that a call may go to a native function without any Python between."""

    __slots__ = ("__call__",)

    __call__: Callable[..., Any]


class _Node(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("what", ctypes.c_void_p),
        ("children", ctypes.c_void_p),
        ("keys", ctypes.c_void_p),
        ("hold", ctypes.c_int64),
        ("maker", ctypes.c_void_p),
    ]


class _Entry(ctypes.Structure):
    _fields_ = [
        ("plan", ctypes.c_void_p),
        ("positions", ctypes.c_int64),
        ("keywords", ctypes.c_int64),
        ("names", ctypes.c_void_p),
        ("places", ctypes.c_void_p),
        ("nodes", ctypes.c_void_p),
        ("result", ctypes.c_void_p),
        ("held", ctypes.c_int64),
    ]


class _Dispatch(ctypes.Structure):
    _fields_ = [
        ("modes", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("entries", ctypes.c_void_p),
        ("slow", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
    ]


class _MethodDef(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


def _objects(values: Sequence[Any]) -> Any:
    return (ctypes.c_void_p * max(1, len(values)))(*map(id, values))


class Entry:
    """The arguments `positional` and `named` (in the order of their leaves) of a plan's function, and its result.

    `order`: the keywords as the call spells them.
    """

    def __init__(
        self, plan: CallPlan, positional: Sequence[Place], named: dict[str, Place], result: Place, order: Sequence[str] | None = None
    ) -> None:
        self.key = (plan.address, tuple(positional), tuple(named.items()), result, tuple(order if order is not None else named))
        names = [sys.intern(name) for name in (order if order is not None else named)]
        places = [*range(len(positional)), *(len(positional) + names.index(name) for name in named)]
        self.plan = plan
        self._alive: list[Any] = [positional, named, result, names]
        self._names = _objects(names)
        self._places = (ctypes.c_int64 * max(1, len(places)))(*places)
        nodes = self._nodes((*positional, *named.values()), inside=False)
        target = self._nodes((result,), inside=False)
        held = sum(place.nodes for place in (*positional, *named.values()))
        self._entry = _Entry(
            plan.address,
            len(positional),
            len(named),
            ctypes.addressof(self._names),
            ctypes.addressof(self._places),
            ctypes.addressof(nodes),
            ctypes.addressof(target),
            max(1, held),
        )

    @property
    def address(self) -> int:
        """Where native code finds it."""
        return ctypes.addressof(self._entry)

    def _nodes(self, places: Sequence[Place], inside: bool) -> Any:
        """A table of nodes; `inside` of something that others may change during the call, what is found is held."""
        table = (_Node * max(1, len(places)))()
        self._alive.append(table)
        for node, place in zip(table, places):
            node.kind, node.hold = KINDS.index(place.kind), int(inside)
            node.count = NUMBER_CODES[place.what] if place.kind == "number" else len(place.children)
            node.what = id(place.what) if place.what is not None or place.kind in ("none", "same") else None
            if place.children:
                open_to_others = inside or place.kind != "tuple"
                node.children = ctypes.addressof(self._nodes(place.children, open_to_others))
            if place.keys:
                keys = _objects(place.keys)
                self._alive.append(keys)
                node.keys = ctypes.addressof(keys)
            if place.kind == "attributes" or (place.kind == "tuple" and place.what is not tuple):
                node.maker = id(place.what)
        return table


_NO_MODE = ctypes.c_int64(0)


class Dispatch:
    """Entries that may grow, and the callable over them.

    `slow(*args, **kwargs)` takes what no entry takes. `out`: the keyword for arrays to write to, or None where the function has its own.
    `modes`: a word that is not 0 while native code must leave every call to `slow`.
    """

    def __init__(self, slow: Callable[..., Any], *, out: str | None = "out", modes: ctypes.c_int64 = _NO_MODE) -> None:
        self._slow, self._modes = slow, modes
        self._out = None if out is None else sys.intern(out)
        self._known: dict[Any, Entry] = {}
        self._lock = threading.Lock()
        self._rows = (ctypes.c_void_p * ENTRIES)()
        self._table = _Dispatch(
            ctypes.addressof(modes), 0, ctypes.addressof(self._rows), id(slow), None if self._out is None else id(self._out)
        )

    def add(self, entry: Entry) -> None:
        """Try `entry` before the others. Those that fall off the table stay alive: a call in flight may be reading them."""
        with self._lock:
            entry = self._known.setdefault(entry.key, entry)
            rows = [row for row in self._rows if row is not None and row != entry.address]
            self._rows[:] = [entry.address, *rows, *[None] * ENTRIES][:ENTRIES]
            self._table.count = min(len(rows) + 1, ENTRIES)

    def builtin(self) -> Callable[..., Any]:
        """The callable; it holds this object."""
        new_function = python_function("PyCFunction_NewEx", ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        return new_function(ctypes.addressof(_method()), (capsule(ctypes.addressof(self._table)), self), None)


_method_lock = threading.Lock()


@cache
def _method() -> _MethodDef:
    """The one definition that all builtins point to, for ever; made by the first caller, for whom others wait."""
    with _method_lock:
        return _make_method()


@cache
def _make_method() -> _MethodDef:
    return _MethodDef(b"gradir_call", native().address("gradir.call"), METH_FASTCALL | METH_KEYWORDS, None)
