"""The group: ops, shared dimensions, kind and roles. Plain data; how it is found is `analysis.py` and `kinds.py`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from gradir.lowering.groups.loops import Extent, Loops, linalg

Kind: TypeAlias = Literal["elementwise", "rows", "contraction", "loops", "chain"]

_NONE = frozenset[int]()


@dataclass(frozen=True, eq=False, slots=True)
class GroupOp:
    """One op of a group: `dims[l]` is the group dimension of its loop l. Everything else is in its own loops' numbering."""

    loops: Loops
    dims: tuple[int, ...]

    @property
    def op(self) -> linalg.GenericOp:
        return self.loops.op

    @property
    def inputs(self) -> tuple[tuple[SSAValue, AffineMap], ...]:
        """Operands that the body uses; the maps go from the op's own loops."""
        return self.loops.inputs

    @property
    def output(self) -> SSAValue:
        """The result (tensors) or the written buffer (memrefs)."""
        return self.loops.output

    @property
    def output_dims(self) -> tuple[int, ...]:
        """Group dimensions of the output's dimensions, in the output's order."""
        return tuple(self.dims[l] for l in self.loops.output_loops)

    @property
    def reduced(self) -> frozenset[int]:
        """Group dimensions that this op reduces."""
        reduced = self.loops.reduced
        return frozenset([d for d, r in zip(self.dims, reduced) if r]) if True in reduced else _NONE

    @property
    def init(self) -> SSAValue | None:
        """The scalar that the accumulator starts with."""
        return self.loops.init


@dataclass(frozen=True, slots=True)
class ContractionRoles:
    """Group dimensions of the one contraction `ops[index]`, lhs its first and rhs its second input.

    `batch`: in both inputs and the output; `m`: output, not rhs; `n`: output and rhs, not lhs; `k`: reduced.
    batch, m, n follow the order of the output, k the order of the loops. An input may be read through affine sums of m and k
    (windows of a convolution). All other ops are the epilogue: elementwise over the whole output space.
    """

    index: int
    batch: tuple[int, ...]
    m: tuple[int, ...]
    n: tuple[int, ...]
    k: tuple[int, ...]


Form: TypeAlias = Literal["full", "row", "reduce_inner", "reduce_outer", "inner", "scalar"]


@dataclass(frozen=True, slots=True)
class Section:
    """Where an op of a `rows` group runs.

    `form`:
    - "full": over outer x inner; "row": over outer alone (one value a row); both elementwise;
    - "reduce_inner": outer x inner -> outer, available when the sweep over the row ends;
    - "reduce_outer": accumulates over all rows (and maybe the inner dimensions too); available when all rows are done;
    - "inner" (over inner) and "scalar" (over nothing): elementwise, after all rows: they read results of "reduce_outer".

    `sweep`: a row is swept once for every reduction that a later op of the row waits for. "full" and "reduce_*" ops run in
    sweep s; a "row" op runs when sweep s of its row has ended (-1: before the first). A full value of an earlier sweep is
    recomputed or kept, as the generator decides. Ops after all rows have sweep -1.
    """

    form: Form
    sweep: int = -1

    @property
    def after_rows(self) -> bool:
        return self.form in ("inner", "scalar")


@dataclass(frozen=True, slots=True)
class RowsRoles:
    """`outer` dimensions enumerate the rows, `inner` ones run within a row; `sections[i]` says where `ops[i]` runs.

    `outer` is empty for a total reduction (one row). `inner` never is. Both follow the order of `Group.space`.
    """

    outer: tuple[int, ...]
    inner: tuple[int, ...]
    sections: tuple[Section, ...]

    @property
    def sweeps(self) -> int:
        """How often a row is swept."""
        return 1 + max((s.sweep for s in self.sections if s.form != "row"), default=0)


@dataclass(frozen=True, slots=True)
class ChainRoles:
    """Several groups one after the other over the same rows, which run in blocks of rows: attention, its gradient.

    `stages` are the positions of the ops of each group. Every op runs over all of `batch`, `summed` and `row` (group dimensions): `row` is
    the one that is blocked. What a stage writes and a later one reads is a strip: a block of rows of it. Ops of `sums` add up along `row`
    and `summed`: each is the last of its values, and starts from a `linalg.fill`.
    """

    stages: tuple[tuple[int, ...], ...]
    batch: tuple[int, ...]
    summed: tuple[int, ...]
    row: int
    sums: frozenset[int]


@dataclass(frozen=True, eq=False, slots=True)
class Group:
    """Ops that become one kernel.

    `extents[d]` is the size of group dimension d. `space` lists the dimensions in the order in which the values of the group are
    laid out, fastest last (every output's dimensions are a subsequence of it); a reduction on its own gives the order of its loops.
    kind "elementwise": every op runs over all of `space`, all parallel; inputs from outside may be read through any affine map.
    kind "rows": see `RowsRoles`. kind "contraction": see `ContractionRoles`. kind "chain": see `ChainRoles`.
    kind "loops": one op, anything goes.
    """

    ops: tuple[GroupOp, ...]
    extents: tuple[Extent, ...]
    kind: Kind
    space: tuple[int, ...]
    rows: RowsRoles | None = None
    contraction: ContractionRoles | None = None
    chain: ChainRoles | None = None
    produced: dict[SSAValue, GroupOp] = field(default_factory=dict[SSAValue, GroupOp])
    """The op of the group that produces a value."""
