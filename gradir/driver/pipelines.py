"""The road from the tensor level to loops: which passes, in which order, and why, as data.

`ROAD` is read by `compile_module`, the named pipelines `to-structured`, `to-buffers`, `to-loops` are stretches of it, and
`MUST_PRECEDE` states the dependencies that any edit of the road has to keep (checked on import). No xDSL is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gradir.errors import GradirError

OptionValue = str | int | float | bool | Sequence["OptionValue"]


@dataclass(frozen=True)
class Request:
    """One pass with its options, as `name{key=value ...}` asks for it."""

    name: str
    options: Mapping[str, OptionValue] = field(default_factory=dict[str, OptionValue])

    def __str__(self) -> str:
        inner = " ".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.name}{{{inner}}}" if inner else self.name


@dataclass(frozen=True)
class Step:
    """One row of the road: `pass_name` takes level `level_in` to `level_out`; `why` is the reason for its place."""

    stage: str
    pass_name: str
    level_in: int
    level_out: int
    why: str


BEFORE_AD: tuple[Step, ...] = (
    Step("tensor", "set-target", 1, 1, "layout, expansion, fusion and schedules ask the target; written once"),
    Step("tensor", "name-sizes", 1, 1, "every later pass compares sizes by their names"),
    Step("tensor", "inline", 1, 1, "no fusion and no simplification crosses a call"),
    Step("tensor", "canonicalize", 1, 1, "before AD: less to differentiate"),
    Step("tensor", "nd-simplify", 1, 1, "before AD: less to differentiate"),
    Step("tensor", "cse", 1, 1, "before AD: one value, one cotangent"),
    Step("tensor", "loop-invariant-code-motion", 1, 1, "before AD: what moves out of a loop is not saved per iteration"),
    Step("tensor", "differentiate", 1, 1, "rules see whole ops, so before anything is expanded or fused"),
)
"""Run first when the module holds `ad` requests."""

ROAD: tuple[Step, ...] = (
    Step("tensor", "set-target", 1, 1, "layout, expansion, fusion and schedules ask the target; written once"),
    Step("tensor", "name-sizes", 1, 1, "every later pass compares sizes by their names"),
    Step("tensor", "inline", 1, 1, "generated derivatives meet their callers: no fusion crosses a call"),
    Step("tensor", "symbol-dce", 1, 1, "inlined functions would be lowered for nobody"),
    Step("tensor", "nd-expand", 1, 1, "composites kept their identity until AD and the target had the chance to take them whole"),
    Step("tensor", "split-complex", 1, 1, "real ops from here on: folds, algebra and loops need not know complex numbers"),
    Step("tensor", "f8-to-bits", 1, 1, "no machine here computes in 8-bit floats: conversions fuse with what is around them"),
    Step("tensor", "canonicalize", 1, 1, "after expansion: its constants and casts fold"),
    Step("tensor", "nd-simplify", 1, 1, "forward, backward and expansions meet: algebra across them"),
    Step("tensor", "cse", 1, 1, "forward and backward share work"),
    Step("tensor", "loop-invariant-code-motion", 1, 1, "expansions and derivatives compute in loops what does not change there"),
    Step("tensor", "dce", 1, 1, "what only the unused results needed is not lowered"),
    Step("structured", "convert-nd-to-linalg", 1, 2, "every op becomes a loop nest, the form that fusion reasons about"),
    Step("structured", "normalize-nests", 2, 2, "nests that people wrote: several results, destinations that hold something"),
    Step("structured", "sink-loops", 2, 2, "a loop around nests is one nest, and fuses like one"),
    Step("structured", "fuse", 2, 2, "cost model on structured ops: bytes, flops, reuse"),
    Step("structured", "outline-kernels", 2, 2, "from here the cost is per distinct kernel"),
    Step("structured", "schedule-kernels", 2, 2, "workspace is declared before buffers are planned"),
    Step("structured", "hoist-packing", 2, 2, "schedules say what is packed; what is packed once lives as long as a loop"),
    Step("structured", "order-kernels", 2, 2, "readers before writers, then least peak live bytes"),
    Step("buffers", "bufferize", 2, 3, "whole-program view of lifetimes, no loops yet"),
    Step("buffers", "plan-memory", 3, 3, "all allocations are known, none is inside a loop nest yet"),
    Step("loops", "lower-kernels", 3, 4, "per distinct kernel"),
    Step("loops", "expand-math", 4, 4, "after vectorisation: polynomials on vectors and scalars alike"),
)

SIMPLIFYING = frozenset({"canonicalize", "nd-simplify", "cse", "dce", "loop-invariant-code-motion", "sink-loops", "hoist-packing"})
"""Passes of the road that only make a program better: `optimize=0` leaves them out."""

MUST_PRECEDE: tuple[tuple[str, str, str], ...] = (
    ("set-target", "nd-expand", "a target may take a composite whole"),
    ("differentiate", "nd-expand", "derivatives of composites are written on the composite"),
    ("name-sizes", "differentiate", "a derivative fills tensors of the sizes that types name"),
    ("name-sizes", "convert-nd-to-linalg", "temporaries are allocated by the names of their sizes"),
    ("inline", "differentiate", "AD of a callee that is inlined anyway would be thrown away"),
    ("inline", "symbol-dce", "only inlining makes functions unreachable"),
    ("inline", "fuse", "no fusion crosses a call"),
    ("differentiate", "split-complex", "derivatives of complex functions are written on complex numbers"),
    ("nd-expand", "split-complex", "composites have no rule for parts"),
    ("split-complex", "convert-nd-to-linalg", "loop nests are over real elements"),
    ("nd-expand", "f8-to-bits", "composites compute in f32 inside and round once"),
    ("f8-to-bits", "convert-nd-to-linalg", "loop nests are over elements that the machine has"),
    ("nd-expand", "convert-nd-to-linalg", "composites have no loop nest of their own"),
    ("nd-expand", "cse", "two expansions of one value share their parts"),
    ("convert-nd-to-linalg", "fuse", "groups are made of loop nests"),
    ("normalize-nests", "fuse", "groups are made of nests of one result"),
    ("normalize-nests", "sink-loops", "bodies of nests of one result say what an element depends on"),
    ("sink-loops", "fuse", "a group is made of what runs in one pass over memory"),
    ("fuse", "outline-kernels", "outlining moves what fusion marked"),
    ("outline-kernels", "schedule-kernels", "a schedule is written once per distinct kernel"),
    ("schedule-kernels", "hoist-packing", "a schedule says which operand is packed, in panels of which width"),
    ("hoist-packing", "order-kernels", "packed weights count as live bytes"),
    ("schedule-kernels", "order-kernels", "declared workspace counts as live bytes"),
    ("order-kernels", "bufferize", "anti-dependences that ordering removed need no copy"),
    ("bufferize", "plan-memory", "the plan places allocations"),
    ("plan-memory", "lower-kernels", "kernels hold no allocation of the caller"),
    ("lower-kernels", "expand-math", "one expansion for scalars and vectors"),
)

PIPELINES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "to-structured": ("tensor", "structured", ("target",)),
    "to-buffers": ("buffers", "buffers", ()),
    "to-loops": ("loops", "loops", ()),
}
"""Named pipelines: first stage, last stage, options."""


def check_order(names: Sequence[str]) -> None:
    """Raise `ValueError` when `names` breaks `MUST_PRECEDE`: the last run of a pass has no run of its predecessor before it."""
    last = {name: index for index, name in enumerate(names)}
    begin = {name: index for index, name in reversed(list(enumerate(names)))}
    for first, second, reason in MUST_PRECEDE:
        if first in begin and second in begin and begin[first] > last[second]:
            raise ValueError(f"pass '{first}' must precede '{second}': {reason}")


check_order([step.pass_name for step in ROAD])
check_order([step.pass_name for step in BEFORE_AD])


def steps_of(name: str) -> list[Step]:
    """The stretch of the road that a named pipeline runs."""
    first, last, _ = PIPELINES[name]
    stages = list(dict.fromkeys(step.stage for step in ROAD))
    wanted = stages[stages.index(first) : stages.index(last) + 1]
    return [step for step in ROAD if step.stage in wanted]


def expand_pipeline(name: str, options: Mapping[str, OptionValue] | None = None) -> list[Request]:
    """The passes of a named pipeline; `target` goes to `set-target`. `GradirError` GR032 for an option it lacks."""
    known = PIPELINES[name][2]
    given = dict(options or {})
    for key in given:
        if key not in known:
            raise GradirError(
                f"pipeline '{name}' has no option '{key}'",
                part="graph",
                code="GR032",
                expected=", ".join(known) or "no options",
                found=key,
                hint="see `gradir-opt --list-passes`",
            )
    return [Request(step.pass_name, given if step.pass_name == "set-target" else {}) for step in steps_of(name)]
