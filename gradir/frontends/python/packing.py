"""Fast paths in and out of containers: straight-line Python written for one structure.

`unpacker` checks that a tree has the structure and the leaves a program was compiled for, and collects the leaves; `packer`
builds a tree from leaves. Walking a `Structure` costs microseconds a node, this code some ten nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradir.frontends.python.dynamic import Spec
from gradir.frontends.python.pytrees import LEAF, Structure

Unpack = Callable[[Any], "tuple[Any, ...] | None"]
Pack = Callable[[Sequence[Any]], Any]


class _Source:
    """Lines of a function under construction, and the constants they name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"ndarray": np.ndarray}
        self.leaves: list[str] = []
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def constant(self, value: Any) -> str:
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def function(self, head: str, body: Sequence[str]) -> Any:
        text = "\n".join([head, *(f"    {line}" for line in body)])
        exec(compile(text, "<packing>", "exec"), self.names)  # the text is made here, from structures only
        return self.names["made"]


def unpacker(structure: Structure, leaves: Sequence[Any]) -> Unpack | None:
    """A function tree -> leaves, or None for a tree of another structure, shapes or types than the example `leaves`.

    A `Spec` stands for arrays of its element type: the call checks their shapes. None in place of the function when an example leaf is
    neither that nor a numpy array or scalar nor a Python number.
    """
    if not all(isinstance(x, np.ndarray | np.generic | Spec) or type(x) in (bool, int, float) for x in leaves):
        return None
    source = _Source()
    examples = iter(leaves)

    def visit(node: Structure, at: str) -> None:
        kind = node.kind
        if kind is LEAF:
            example = next(examples)
            source.leaves.append(at)
            if isinstance(example, Spec):
                source.lines.append(f"if type({at}) is not ndarray or {at}.dtype != {source.constant(example.dtype)}: return None")
            elif isinstance(example, np.ndarray):
                shape, dtype = source.constant(example.shape), source.constant(example.dtype)
                source.lines.append(f"if type({at}) is not ndarray or {at}.shape != {shape} or {at}.dtype != {dtype}: return None")
            else:
                source.lines.append(f"if type({at}) is not {source.constant(type(example))}: return None")
            return
        if kind is type(None):
            source.lines.append(f"if {at} is not None: return None")
            return
        check = f"type({at}) is not {source.constant(kind)}"
        if kind in (dict, list, tuple):
            check += f" or len({at}) != {len(node.children)}"
        source.lines.append(f"if {check}: return None")
        for k, child in enumerate(node.children):
            name = source.fresh()
            if kind is dict:
                source.lines.append(f"{name} = {at}[{source.constant(node.data[k])}]")
            elif node.data:
                source.lines.append(f"{name} = {at}.{node.data[k]}")
            else:
                source.lines.append(f"{name} = {at}[{k}]")
            visit(child, name)

    visit(structure, "tree")
    found = ", ".join(source.leaves)
    body = [
        "try:",
        *(f"    {line}" for line in source.lines),
        f"    return ({found}{',' if found else ''})",
        "except KeyError:",
        "    return None",
    ]
    return source.function("def made(tree):", body)


def packer(structure: Structure) -> Pack:
    """A function leaves -> tree."""
    source = _Source()
    position = iter(range(structure.leaves))

    def visit(node: Structure) -> str:
        kind = node.kind
        if kind is LEAF:
            return f"leaves[{next(position)}]"
        if kind is type(None):
            return "None"
        children = [visit(c) for c in node.children]
        if kind is dict:
            return "{" + ", ".join(f"{source.constant(k)}: {c}" for k, c in zip(node.data, children)) + "}"
        if kind is list:
            return f"[{', '.join(children)}]"
        if kind is tuple:
            return f"({', '.join(children)}{',' if children else ''})"
        if hasattr(kind, "_fields"):
            return f"{source.constant(kind)}({', '.join(children)})"
        return f"{source.constant(kind)}({', '.join(f'{n}={c}' for n, c in zip(node.data, children))})"

    return source.function("def made(leaves):", [f"return {visit(structure)}"])
