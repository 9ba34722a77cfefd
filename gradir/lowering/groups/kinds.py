"""The kind of a set of ops with known dimensions, and the role of each dimension. None: no loop nest of ours computes the set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.ir import SSAValue

from gradir.lowering.groups.group import ContractionRoles, Form, GroupOp, RowsRoles, Section
from gradir.lowering.groups.loops import Extent

MAX_SINGLE_ROW = 1 << 16
"""Elements of a one-row group that is swept more than once: beyond this the row leaves the cache, and two kernels run in parallel."""


def elementwise_space(ops: Sequence[GroupOp], rank: int) -> tuple[int, ...] | None:
    """The common space of ops that are all elementwise over all dimensions in one order."""
    space = ops[0].output_dims
    same = all(not o.loops.reads_output and o.output_dims == space and len(o.dims) == rank == len(space) for o in ops)
    return space if same else None


def contraction_roles(ops: Sequence[GroupOp], *, continued: bool = False) -> tuple[tuple[int, ...], ContractionRoles] | None:
    """(space, roles) when exactly one op contracts two inputs from outside and the others are elementwise over its output.

    `continued`: the sum may go on from what the output holds.
    """
    found = [i for i, o in enumerate(ops) if is_contraction(o, continued=continued)]
    if len(found) != 1:
        return None
    index = found[0]
    core = ops[index]
    space = core.output_dims
    inside = {o.output for o in ops}
    if any(v in inside for v, _ in core.inputs):
        return None
    epilogue = (o for i, o in enumerate(ops) if i != index)
    if not all(o.output_dims == space and len(o.dims) == len(space) and not o.loops.reads_output for o in epilogue):
        return None
    left, right = (frozenset(core.dims[l] for l in map.used_dims()) for _, map in core.inputs)
    batch = tuple(d for d in space if d in left and d in right)
    n = tuple(d for d in space if d in right and d not in left)
    m = tuple(d for d in space if d not in right)
    return space, ContractionRoles(index, batch, m, n, tuple(d for d in core.dims if d in core.reduced))


def is_contraction(o: GroupOp, *, continued: bool = False) -> bool:
    """A sum of products of two inputs that is worth a micro-kernel: both sides have free dimensions, or windows are read.

    A product of a matrix and a vector is a reduction of rows, which may also take part in larger groups.
    """
    loops = o.loops
    started = loops.init is not None or continued
    if not (loops.multiplies and loops.is_reduction and started and len(loops.inputs) == 2 and not loops.captured):
        return False
    left, right = (map.used_dims() for _, map in loops.inputs)
    output = set(loops.output_loops)
    return loops.has_windows or bool(output & (left - right) and output & (right - left))


def rows_roles(ops: Sequence[GroupOp], extents: Sequence[Extent]) -> tuple[tuple[int, ...], RowsRoles] | None:
    """(space, roles) of reductions along rows or columns with the elementwise ops around them."""
    if not any(o.loops.is_reduction for o in ops) or not all(_fits_rows(o) for o in ops):
        return None
    everything = frozenset(range(len(extents)))
    space = _space(ops, len(extents))
    if space is None:
        return None
    found = [(outer, sections) for outer in _candidates(ops, everything) if (sections := _sections(ops, outer, everything)) is not None]
    if not found:
        return None
    fastest = _fastest(ops, space)
    outer, sections = next((pair for pair in found if fastest not in pair[0]), found[0])
    roles = RowsRoles(tuple(d for d in space if d in outer), tuple(d for d in space if d not in outer), sections)
    if not outer and roles.sweeps > 1 and not _fits_in_cache(extents):
        return None
    return space, roles


def rows_with(
    rows: RowsRoles, ops: Sequence[GroupOp], last: GroupOp, space: tuple[int, ...], extents: Sequence[Extent]
) -> RowsRoles | None:
    """What `rows_roles` gives for `ops` and one more elementwise op at their end; None where it would have to look again."""
    outer, everything = frozenset(rows.outer), frozenset(range(len(extents)))
    settled = any(len(o.dims) == len(space) and not o.loops.is_reduction for o in ops)
    if len(last.dims) == len(space) and not settled:
        return None
    if _fastest(ops, space) in outer and frozenset(last.dims) not in (everything, *_candidates(ops, everything)):
        return None
    placed = {o.output: section for o, section in zip(ops, rows.sections)}
    section = _section(last, [placed[v] for v, _ in last.inputs if v in placed], outer, everything)
    if section is None:
        return None
    roles = RowsRoles(rows.outer, rows.inner, (*rows.sections, section))
    return roles if outer or roles.sweeps == 1 or _fits_in_cache(extents) else None


def _fits_in_cache(extents: Sequence[Extent]) -> bool:
    sizes = [e for e in extents if isinstance(e, int)]
    return len(sizes) == len(extents) and prod(sizes) <= MAX_SINGLE_ROW


def _fits_rows(o: GroupOp) -> bool:
    if is_contraction(o):
        return False
    if o.loops.is_reduction:
        return o.loops.combiner is not None and o.loops.init is not None and not o.loops.has_windows
    return not o.loops.reads_output


def _space(ops: Sequence[GroupOp], rank: int) -> tuple[int, ...] | None:
    """One order of all dimensions that every output's order is a subsequence of."""
    full = [o for o in ops if len(o.dims) == rank]
    if not full:
        return None
    first = next((o for o in full if not o.loops.is_reduction), None)
    space = first.output_dims if first is not None else full[0].dims
    place = {d: i for i, d in enumerate(space)}
    ordered = all(places == sorted(places) for o in ops if (places := [place[d] for d in o.output_dims]))
    return space if ordered else None


def _fastest(ops: Sequence[GroupOp], space: tuple[int, ...]) -> int | None:
    """The dimension along which neighbours lie side by side in memory: of a full output, else of the first full operand."""
    if not space:
        return None
    for o in ops:
        if len(o.dims) != len(space):
            continue
        if not o.loops.is_reduction:
            return o.output_dims[-1]
        for _, read in o.loops.reads:
            if read and read[-1] is not None and len(read) == len(space):
                return o.dims[read[-1]]
    return space[-1]


def _candidates(ops: Sequence[GroupOp], everything: frozenset[int]) -> Iterator[frozenset[int]]:
    """Sets of outer dimensions that some op suggests."""
    seen: set[frozenset[int]] = set()
    for o in ops:
        own = frozenset(o.dims)
        for outer in (own - o.reduced, o.reduced) if o.reduced else (own,):
            if outer != everything and outer not in seen:
                seen.add(outer)
                yield outer


def _sections(ops: Sequence[GroupOp], outer: frozenset[int], everything: frozenset[int]) -> tuple[Section, ...] | None:
    """Where every op runs when `outer` enumerates the rows; None when one op fits nowhere."""
    placed: dict[SSAValue, Section] = {}
    sections: list[Section] = []
    for o in ops:
        section = _section(o, [placed[v] for v, _ in o.inputs if v in placed], outer, everything)
        if section is None:
            return None
        placed[o.output] = section
        sections.append(section)
    return tuple(sections)


def _section(o: GroupOp, reads: Sequence[Section], outer: frozenset[int], everything: frozenset[int]) -> Section | None:
    own, inner = frozenset(o.dims), everything - outer
    if any(s.after_rows or s.form == "reduce_outer" for s in reads):
        form: Form = "scalar" if not own else "inner"
        return Section(form) if not o.reduced and (not own or own == inner) else None
    sweep = max((s.sweep + (s.form in ("row", "reduce_inner")) for s in reads), default=0)
    sweep = max(sweep, 0)
    ended = max((s.sweep for s in reads), default=-1)
    if not o.reduced:
        if own == everything:
            return Section("full", sweep)
        return Section("row", ended) if own == outer else None
    if o.reduced == inner and own == everything:
        return Section("reduce_inner", sweep)
    if outer and (o.reduced in (outer, own) and outer <= o.reduced):
        if own == everything:
            return Section("reduce_outer", sweep)
        return Section("reduce_outer", ended) if own == outer else None
    return None
