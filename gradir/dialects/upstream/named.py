"""Upstream's named ops of `linalg`: read and printed here, but nothing evaluates, differentiates or lowers them.

`linalg.generic`, `fill` and `copy` say all that they say. What meets another one points to the pass of upstream that rewrites it.
"""

from __future__ import annotations

from xdsl.ir import Operation


def generic_form(op: Operation, otherwise: str) -> str:
    """The next step of an error about an op that nobody knows: for one of `linalg` how it becomes `linalg.generic`, else `otherwise`."""
    return "rewrite it as linalg.generic: mlir-opt --linalg-generalize-named-ops" if op.name.startswith("linalg.") else otherwise
