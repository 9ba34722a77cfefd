"""How far down the road a module is, and which passes are left: tools accept a module at any level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import FunctionType, TensorType
from xdsl.ir import Operation

from gradir.dialects.target import TARGET_ATTRIBUTE
from gradir.dialects.upstream.func import FuncOp
from gradir.driver.pipelines import BEFORE_AD, ROAD, SIMPLIFYING, OptionValue, Request, Step


@dataclass(frozen=True)
class Facts:
    """What decides how far a module is: the dialects and tensor-typed functions in it, and the marks that passes leave."""

    dialects: frozenset[str]
    tensors: bool
    marks: frozenset[str]


def facts_of(module: Operation) -> Facts:
    """One walk over the module."""
    dialects: set[str] = set()
    marks: set[str] = set()
    tensors = False
    for op in module.walk():
        dialects.add(op.name.partition(".")[0])
        marks.update(key for key in op.attributes if key.startswith("gradir."))
        if isinstance(op, FuncOp):
            tensors = tensors or _has_tensors(op.function_type)
    return Facts(frozenset(dialects), tensors, frozenset(marks))


def level_of(module: Operation) -> int:
    """The lowest level number of the road that occurs in the module: 1 tensor, 2 structured, 3 buffers, 4 loops."""
    facts = facts_of(module)
    if facts.dialects & {"nd", "ad"}:
        return 1
    if facts.tensors:
        return 2 if facts.dialects & {"linalg", "tensor"} else 1
    return 3 if "linalg" in facts.dialects else 4


def remaining(module: Operation, options: dict[str, OptionValue] | None = None, *, last: str = "loops", optimize: int = 2) -> list[Request]:
    """The passes that take the module to the end of stage `last`; `options` are those of `set-target`, which runs when it is needed.

    `optimize`: 2 all of them, 1 no fusion, 0 no fusion and no simplification.
    """
    facts = facts_of(module)
    steps = _steps_left(level_of(module), facts)
    stages = list(dict.fromkeys(step.stage for step in ROAD))
    kept = stages[: stages.index(last) + 1]
    wanted = [
        Request(step.pass_name, {"join": False} if step.pass_name == "fuse" and optimize < 2 else {})
        for step in steps
        if step.stage in kept and (optimize > 0 or step.pass_name not in SIMPLIFYING)
    ]
    if TARGET_ATTRIBUTE in facts.marks and not options:
        return wanted
    return [Request("set-target", options or {}), *wanted]


ALSO_STRUCTURED = frozenset({"inline", "symbol-dce", "canonicalize", "cse", "dce"})
"""Passes of the tensor level that a module written at level 2 needs too: below it, only kernels are called."""


def _steps_left(level: int, facts: Facts) -> Sequence[Step]:
    first = {1: "name-sizes", 2: "normalize-nests", 3: "plan-memory", 4: "expand-math"}[level]
    if level == 2 and "gradir.group" in facts.marks:
        first = "outline-kernels"
    if level == 2 and "gradir.kernel" in facts.marks:
        first = "schedule-kernels"
    if level == 3 and ("gradir.arena" in facts.marks or "gradir.results" not in facts.marks):
        first = "lower-kernels"
    names = [step.pass_name for step in ROAD]
    left = ROAD[names.index(first) :]
    if first == "normalize-nests":
        left = (*(step for step in ROAD if step.stage == "tensor" and step.pass_name in ALSO_STRUCTURED), *left)
    return (*(step for step in BEFORE_AD if step.pass_name != "set-target"), *left) if "ad" in facts.dialects else left


def _has_tensors(kind: FunctionType) -> bool:
    return any(isinstance(value, TensorType) for value in (*kind.inputs.data, *kind.outputs.data))
