"""Nested containers of arrays: dict, list, tuple, named tuple, dataclass and None; everything else is a leaf.

Dictionary keys are visited in sorted order, dataclass fields in order of definition.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gradir.frontends.python.trace import user_error


@dataclass(frozen=True)
class Structure:
    """The shape of a nested container: its kind, what distinguishes the node, and its children. Hashable."""

    kind: Any
    data: tuple[Any, ...] = ()
    children: tuple[Structure, ...] = ()

    @property
    def leaves(self) -> int:
        return 1 if self.kind is LEAF else sum(c.leaves for c in self.children)

    def __str__(self) -> str:
        if self.kind is LEAF:
            return "*"
        if self.kind is type(None):
            return "None"
        inner = ", ".join(f"{k}: {c}" for k, c in zip(self.data, self.children)) if self.data else ", ".join(map(str, self.children))
        return f"{self.kind.__name__}({inner})"


class _Leaf:
    __name__ = "leaf"


LEAF = _Leaf()
_LEAF = Structure(LEAF)
_NONE = Structure(type(None))


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of `tree` from left to right, and its structure; GradirError GR135 for a container that contains itself."""
    leaves: list[Any] = []
    try:
        return leaves, _flatten(tree, leaves)
    except RecursionError:
        if (around := _circle(tree)) is None:
            raise
    raise user_error(
        "a container contains itself",
        code="GR135",
        expected="containers inside of containers, down to arrays",
        found=f"a {around} that is reached again from inside of it",
        hint="pass the arrays in a container of their own",
    )


def _circle(tree: Any) -> str | None:
    """The kind of a container of `tree` that contains itself; None if there is none."""
    inside: set[int] = set()
    waiting = [(tree, False)]
    while waiting:
        node, done = waiting.pop()
        if done:
            inside.remove(id(node))
            continue
        if id(node) in inside:
            return type(node).__name__
        parts = _parts_of(node)
        if parts:
            inside.add(id(node))
            waiting += [(node, True), *((part, False) for part in parts)]
    return None


def _parts_of(node: Any) -> list[Any]:
    """What a container holds; nothing for a leaf."""
    if type(node) is dict:
        return list(node.values())
    if isinstance(node, list | tuple):
        return list(node)
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        return [getattr(node, f.name) for f in dataclasses.fields(node)]
    return []


def _ordered(tree: dict[Any, Any]) -> list[Any]:
    """The keys in an order that does not depend on insertion; keys of several types by type first."""
    try:
        return sorted(tree)
    except TypeError:
        return sorted(tree, key=lambda key: (type(key).__name__, repr(key)))


def _flatten(tree: Any, leaves: list[Any]) -> Structure:
    kind = type(tree)
    if tree is None:
        return _NONE
    if kind is dict:
        keys = tuple(_ordered(tree))
        return Structure(dict, keys, tuple(_flatten(tree[k], leaves) for k in keys))
    if kind is list or kind is tuple:
        return Structure(kind, (), tuple(_flatten(v, leaves) for v in tree))
    if isinstance(tree, tuple) and hasattr(kind, "_fields"):
        return Structure(kind, tuple(kind._fields), tuple(_flatten(v, leaves) for v in tree))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        names = tuple(f.name for f in dataclasses.fields(tree))
        return Structure(kind, names, tuple(_flatten(getattr(tree, n), leaves) for n in names))
    leaves.append(tree)
    return _LEAF


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    """Inverse of `flatten`."""
    it = iter(leaves)
    return _unflatten(structure, lambda: next(it))


def _unflatten(structure: Structure, take: Callable[[], Any]) -> Any:
    kind = structure.kind
    if kind is LEAF:
        return take()
    if kind is type(None):
        return None
    children = [_unflatten(c, take) for c in structure.children]
    if kind is dict:
        return dict(zip(structure.data, children))
    if kind is list or kind is tuple:
        return kind(children)
    if hasattr(kind, "_fields"):
        return kind(*children)
    return kind(**dict(zip(structure.data, children)))


def tree_map(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Apply `function` to corresponding leaves of trees of one structure; where `tree` has a leaf, the others may have containers."""
    leaves, structure = flatten(tree)
    others = [_parts(structure, other) for other in rest]
    return unflatten(structure, [function(*xs) for xs in zip(leaves, *others)])


def _parts(structure: Structure, tree: Any) -> list[Any]:
    """What stands in `tree` where `structure` has its leaves, as `jax.tree.map` has it; GradirError GR107 where the two differ above."""
    parts: list[Any] = []

    def visit(wanted: Structure, part: Any) -> None:
        if wanted.kind is LEAF:
            parts.append(part)
            return
        found = flatten(part)[1]
        if (found.kind, found.data, len(found.children)) != (wanted.kind, wanted.data, len(wanted.children)):
            raise user_error(
                "tree_map: the trees have different structures",
                code="GR107",
                op="tree_map",
                expected=str(structure),
                found=str(flatten(tree)[1]),
            )
        for child, below in zip(wanted.children, _below(part, wanted)):
            visit(child, below)

    visit(structure, tree)
    return parts


def _below(node: Any, structure: Structure) -> list[Any]:
    """The children of a container of this structure."""
    if structure.kind is dict:
        return [node[key] for key in structure.data]
    return [getattr(node, name) for name in structure.data] if structure.data else list(node or ())


def paths(structure: Structure, prefix: str = "") -> list[str]:
    """A readable path per leaf, such as `params['w1'][0]`."""
    if structure.kind is LEAF:
        return [prefix]
    out: list[str] = []
    for k, child in enumerate(structure.children):
        if structure.kind is dict:
            step = f"[{structure.data[k]!r}]"
        elif structure.data:
            step = f".{structure.data[k]}"
        else:
            step = f"[{k}]"
        out += paths(child, prefix + step)
    return out
