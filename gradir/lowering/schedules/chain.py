"""Schedules of chains: how many rows go through all stages together, and whether a chain pays at all.

A strip is a block of rows of what one stage writes and a later one reads. The strips of a block are as large as L2 at most: a stage goes
through them in order. More rows read the operands that all rows share (keys and values) less often.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from gradir.dialects.kernel import ChainAttr
from gradir.lowering.groups import Group, GroupOp
from gradir.lowering.groups.kinds import is_contraction
from gradir.lowering.schedules.contraction import even_split, most_rows
from gradir.lowering.schedules.machine import Machine, bytes_of

MOST_ROWS = 128
"""Rows of a block: more do not read the shared operands less often in a way that shows, and take cache."""
SHARED_SHARE = 4
"""The operands that all rows of a batch read take a fourth of the last cache at most."""


@dataclass(frozen=True)
class Traffic:
    """Bytes of a chain: of a row of all strips, of what all rows of one batch share, of the whole tensors that strips replace."""

    strip_row: int
    shared: int
    saved: int


def crossing(group: Group) -> list[GroupOp]:
    """The ops whose values one stage writes and a later one reads."""
    assert group.chain is not None
    stage_of = {position: number for number, stage in enumerate(group.chain.stages) for position in stage}
    writer = {o.output: position for position, o in enumerate(group.ops)}
    found: dict[int, None] = {}
    for position, o in enumerate(group.ops):
        for value, _ in o.inputs:
            source = writer.get(value)
            if source is not None and stage_of[source] != stage_of[position]:
                found[source] = None
    return [group.ops[position] for position in sorted(found)]


def _size(group: Group, dims: tuple[int, ...] | frozenset[int]) -> int:
    return prod(e for d in dims if isinstance(e := group.extents[d], int))


def traffic_of(group: Group) -> Traffic:
    """What a chain moves."""
    roles = group.chain
    assert roles is not None
    around = {*roles.batch, *roles.summed}
    strip_row = saved = 0
    for o in crossing(group):
        within = tuple(d for d in o.output_dims if d not in around and d != roles.row)
        strip_row += _size(group, within) * bytes_of(o.output)
        saved += _size(group, o.output_dims) * bytes_of(o.output)
    shared: dict[SSAValue, int] = {}
    inside = {o.output for o in group.ops}
    for o in group.ops:
        operands = [(v, frozenset(o.dims[l] for l in map_.used_dims())) for v, map_ in o.inputs] if is_contraction(o) else []
        if o.reduced & {roles.row}:
            operands.append((o.output, frozenset(o.output_dims)))
        for value, dims in operands:
            if roles.row not in dims and (value not in inside or value is o.output):
                shared[value] = _size(group, dims - around) * bytes_of(value)
    return Traffic(strip_row, sum(shared.values()), saved)


def rows_of_block(group: Group, machine: Machine) -> int:
    """Rows that go through the stages together; fewer than a register tile has: the strips do not fit."""
    roles = group.chain
    assert roles is not None
    extent = group.extents[roles.row]
    assert isinstance(extent, int)
    most = min(MOST_ROWS, machine.l2 // max(1, traffic_of(group).strip_row), extent)
    height = most_rows(machine)
    if most < height:
        return most
    runs = even_split(extent, most, max(height, most // 2))
    return runs[0][2] if runs else most


def pays(group: Group, machine: Machine) -> bool:
    """Do the tensors that are never made outgrow the cache, while blocks and what they share fit?"""
    traffic = traffic_of(group)
    room = max(machine.l3 // SHARED_SHARE, 2 * machine.l2)
    return traffic.saved > machine.l2 and traffic.shared <= room and rows_of_block(group, machine) >= most_rows(machine)


def schedule_chain(group: Group, machine: Machine) -> ChainAttr:
    """block = [rows]; parallel = the batch dimensions, all of them as one loop, where there are enough for the threads."""
    roles = group.chain
    assert roles is not None
    batches = _size(group, roles.batch)
    fields: dict[str, list[int]] = {"block": [rows_of_block(group, machine)]}
    if machine.threads > 1 and batches >= machine.threads:
        fields["parallel"] = list(roles.batch)
    elif machine.threads > 1 and not roles.sums:
        fields["parallel"] = [roles.row]
    return ChainAttr.of(**fields)
