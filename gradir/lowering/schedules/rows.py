"""Schedules of row-wise kernels: partial accumulators along a row, rows per task when the work is large."""

from __future__ import annotations

from math import prod

from gradir.dialects.kernel import RowsAttr
from gradir.lowering.groups import Group
from gradir.lowering.schedules.machine import Machine, bytes_of, extent_or
from gradir.lowering.schedules.streaming import has_polynomials, streamed_results

ACCUMULATORS = 4
"""Registers per accumulator of a long row: latency 4, two additions a cycle; 32 lanes bound the additions in a row (docs/numerics.md)."""
PARALLEL_ELEMENTS = 1 << 19
"""Elements, once for each sweep and polynomial, from which on a second thread pays: 40 us of one thread."""
POLYNOMIAL = 4
"""Sweeps over memory in the time of one polynomial."""
LEAST_COLUMNS = 512
"""Columns that threads share: each task reads pieces of rows."""
PAGE_BYTES = 4096
"""Pieces of rows that are shorter are read badly: the processor fetches ahead within a page. Threads share rows then."""
UNKNOWN = 512


def schedule_rows(group: Group, machine: Machine) -> RowsAttr:
    """tile = [registers of an accumulator, lanes]; parallel over the outermost row dimension, over columns if only rows are joined, over
    pieces of the row if there is one."""
    roles = group.rows
    assert roles is not None
    lanes = machine.lanes_of(max(bytes_of(o.output) for o in group.ops))
    fields = {"tile": [ACCUMULATORS, lanes], "stream": streamed_results(group, machine)}
    extents = [extent_or(e, UNKNOWN) for e in group.extents]
    independent = bool(roles.outer) and not any(s.form == "reduce_outer" for s in roles.sections)
    passes = roles.sweeps + POLYNOMIAL * sum(has_polynomials(o.op) for o in group.ops)
    if machine.threads > 1 and prod(extents) * passes >= PARALLEL_ELEMENTS:
        if independent:
            fields["parallel"] = [roles.outer[0]]
        elif not roles.outer:
            fields["parallel"] = [roles.inner[0]]
        elif keeps_columns_apart(group) and extents[roles.inner[-1]] >= LEAST_COLUMNS:
            piece = extents[roles.inner[-1]] * bytes_of(group.ops[0].output) // (2 * machine.threads)
            fields["parallel"] = [roles.outer[0] if piece < PAGE_BYTES and len(roles.outer) == 1 else roles.inner[-1]]
    return RowsAttr.of(**fields)


def keeps_columns_apart(group: Group) -> bool:
    """Does every value of the group belong to one position in the row (or to one and its row)?"""
    roles = group.rows
    assert roles is not None
    if any(s.form not in ("full", "reduce_outer", "inner") for s in roles.sections):
        return False
    inner = set(roles.inner)
    return all(inner <= set(o.output_dims) for o in group.ops)
