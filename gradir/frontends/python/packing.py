"""A fast way into containers: straight-line Python written for one structure.

`packer` builds a tree from leaves. Walking a `Structure` costs microseconds a node, this code some ten nanoseconds; native code that
packs its own results (`gradir.runtime.dispatch`) does without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradir.frontends.python.pytrees import LEAF, Structure

Pack = Callable[[Sequence[Any]], Any]


class _Source:
    """A function under construction: the constants that it names."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}

    def constant(self, value: Any) -> str:
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def function(self, head: str, body: Sequence[str]) -> Any:
        text = "\n".join([head, *(f"    {line}" for line in body)])
        exec(compile(text, "<packing>", "exec"), self.names)  # the text is made here, from structures only
        return self.names["made"]


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
