"""Schedules of row-wise kernels: partial accumulators along a row, rows per task when the work is large."""

from __future__ import annotations

from math import prod

from gradir.dialects.kernel import RowsAttr
from gradir.lowering.groups import Group
from gradir.lowering.schedules.machine import Machine, bytes_of, extent_or

ACCUMULATORS = 4
"""Registers per accumulator of a long row: latency 4, two additions a cycle; 32 lanes bound the additions in a row (docs/numerics.md)."""
PARALLEL_ELEMENTS = 1 << 19
UNKNOWN = 512


def schedule_rows(group: Group, machine: Machine) -> RowsAttr:
    """tile = [registers of an accumulator, lanes]; parallel over the outermost row dimension unless some op accumulates over rows."""
    roles = group.rows
    assert roles is not None
    lanes = machine.lanes_of(max(bytes_of(o.output) for o in group.ops))
    fields = {"tile": [ACCUMULATORS, lanes]}
    extents = [extent_or(e, UNKNOWN) for e in group.extents]
    independent = bool(roles.outer) and not any(s.form == "reduce_outer" for s in roles.sections)
    if machine.threads > 1 and independent and prod(extents) * roles.sweeps >= PARALLEL_ELEMENTS:
        fields["parallel"] = [roles.outer[0]]
    return RowsAttr.of(**fields)
