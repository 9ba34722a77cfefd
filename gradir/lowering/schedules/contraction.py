"""Schedules of contractions: the register tile, packing, and the loop that threads share.

Measured on AVX2 (16 registers): 6, 5 or 4 rows of two registers run equally fast once the column operand is packed, so a height that
divides the rows is preferred. Unpacked, the columns of one panel use a few cache sets only: they fight for them when rows lie a multiple
of 512 bytes apart, or when the operand is larger than half of L1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, prod

from gradir.dialects.kernel import ContractionAttr
from gradir.lowering.groups import Group, joined_loops
from gradir.lowering.schedules.convolution import channels_across, positions_in_block, shared_columns, sums_positions
from gradir.lowering.schedules.machine import Machine, bytes_of, element_of, extent_or

JOINS = (("i16", {"i8", "i16"}, "i32"), ("bf16", {"bf16"}, "f32"))
"""What an instruction that adds up products of neighbours reads, the operands that it serves, and the sums."""
UNKNOWN = 128
"""What a size that only the run knows is taken for."""
PARALLEL_WORK = 2_000_000
"""Multiply-adds from which on a second thread pays: 40 us of one thread, 23 of two that are awake; waking one takes about as long."""
PANELS = 16
"""Panels of columns that are packed together."""
ROWS_PACKED_PANELS, GROUP_BYTES = 64, 4 << 20
"""Panels of a group where blocks of rows are copied too, and what they take at most."""
MOST_BLOCK = 96
"""Rows that go through a group of panels together, where L2 has room for them."""
K_BLOCK = 512
"""Steps of k between visits of few results in memory, where the operands do not stay in L2."""
LONG_K_BLOCK = 2048
"""Steps of k where not even one tile of rows stays in L2."""
SKINNY, SKINNY_K_BLOCK = 8, 8
"""Up to so many rows the column operand is read once from memory: in bands of so many of its rows, side by side."""
CONFLICT_BYTES = 512
TURNED = 64
"""Columns from which on a row operand that lies the other way round is copied."""
PAGE_BYTES = 2048


def even_split(n: int, most: int, least: int) -> list[tuple[int, int, int]]:
    """`n` rows as (start, count, size) runs of tiles of at most `most` rows that differ by one row at most.

    A size from `least` on that divides `n` is preferred: one micro-kernel instead of two.
    """
    if n <= 0:
        return []
    for size in range(most, max(least, 2) - 1, -1):
        if n % size == 0:
            return [(0, n // size, size)]
    count = -(-n // most)
    small, larger = divmod(n, count)
    runs = [(0, larger, small + 1), (larger * (small + 1), count - larger, small)]
    return [r for r in runs if r[1] > 0]


def most_rows(machine: Machine) -> int:
    """Rows of two registers that leave room for a row of the other operand and a broadcast element: 6 of 16, 12 of 32 registers."""
    return max(2, min(12, (machine.registers - 4) // 2))


def tile_of(machine: Machine, element_bytes: int, rows: int, columns: int) -> tuple[int, int]:
    """(rows, columns) of the register tile: as many accumulators as the registers hold, whatever the shape of the output."""
    lanes = machine.lanes_of(element_bytes)
    most = most_rows(machine)
    if rows == 1:
        return 1, _power_of_two(columns, lanes, 8 * lanes)
    if rows == 2:
        return 2, _power_of_two(columns, lanes, 4 * lanes)
    if columns <= lanes:
        return 2 * most, lanes
    return most, 2 * lanes


def _power_of_two(columns: int, least: int, most: int) -> int:
    width = least
    while width < most and 2 * width <= columns:
        width *= 2
    return width


def schedule_contraction(group: Group, machine: Machine) -> ContractionAttr:
    """The schedule of a contraction, from the group's roles and extents and the machine."""
    roles = group.contraction
    assert roles is not None
    core = group.ops[roles.index]
    size = bytes_of(core.output)
    extents = [extent_or(e, UNKNOWN) for e in group.extents]
    last = next((d for d in reversed(group.space) if extents[d] != 1), None)
    across = channels_across(group)
    last = last if across is None else across
    if last in roles.m:  # the operand that varies along the output's last dimension gives the columns
        rows_dims, column_dims = roles.n, roles.m
    else:
        rows_dims, column_dims = roles.m, roles.n
    rows = prod(extents[d] for d in rows_dims)
    loops = [run for dims in (roles.batch, column_dims, rows_dims) for run in joined_loops(group, dims)]
    trips = {d: prod(extents[e] for e in run) for run in loops for d in run}
    columns = trips[last] if last is not None else 1
    tile = tile_of(machine, size, rows, columns)
    reads_columns = core.inputs[1 if column_dims is roles.n else 0]
    contiguous = _is_last_dim(core.dims, reads_columns, last)
    row_bytes = columns * size
    depth = prod(extents[d] for d in roles.k)
    scattered = row_bytes % CONFLICT_BYTES == 0 or row_bytes >= PAGE_BYTES or depth * row_bytes > machine.l1 // 2
    wide = columns > tile[1] and scattered
    pack = [1] if last in column_dims and (rows > SKINNY and wide if contiguous else rows >= SKINNY) else []
    row_loops = [run for run in loops if run[0] in rows_dims and trips[run[0]] != 1]
    one_loop = len(row_loops) == 1
    sums_once = len([run for run in joined_loops(group, roles.k) if prod(extents[d] for d in run) != 1]) <= 1
    simple = one_loop and sums_once and last in column_dims
    elements = {element_of(value) for value, _ in core.inputs}
    narrow = elements - {element_of(core.output)}
    if narrow and simple and rows > SKINNY and columns >= TURNED // 2 and depth >= 4:
        # both operands are converted once, not for every tile that reads them
        pack = [0, 1]
        joins = next((e for e, given, sums in JOINS if elements <= given and element_of(core.output) == sums), "")
        tile = (*tile, 2) if joins in machine.joins else tile
    work = prod(extents)
    parallel = _parallel(loops, trips, machine, last, tile[1]) if work >= PARALLEL_WORK else []
    alone = not parallel and prod(extents[d] for d in roles.batch) == 1
    rest = prod(extents[d] for d in column_dims)
    if sums_positions(core, extents):
        if not roles.batch:
            parallel = shared_columns(machine, last, columns, tile[1]) if work >= PARALLEL_WORK else []
        steps = positions_in_block(machine, depth, rows, rest, prod(extents[d] for d in roles.batch) * size)
    elif not alone:
        steps = 0
    else:
        steps = _k_block(machine, tile[0], depth, rows, rest, size, bool(pack))
    streams = parallel == [last] and not alone and not pack and sums_once and rows <= SKINNY and depth * row_bytes > machine.l2
    if streams:  # each thread reads its columns in bands of k, as one thread reads all of them
        steps = SKINNY_K_BLOCK
    reads_rows = core.inputs[0 if column_dims is roles.n else 1]
    turned = one_loop and sums_once and _is_last_dim(core.dims, reads_rows, next(d for d in reversed(row_loops[0]) if extents[d] != 1))
    if turned and pack == [1] and columns >= TURNED and depth >= 8:
        pack = [0, *pack]
    in_rows = _rows_of_block(machine, tile[0], steps or depth, size) if pack and one_loop else 0
    in_columns = 0
    if (pack and one_loop) or last in parallel:
        most = _panels_of_group((steps or depth) * tile[1] * size, 0 in pack) if pack and one_loop else columns if streams else 1
        in_columns = _columns_of_group(machine, columns, tile[1], most, last in parallel)
    if parallel and parallel[0] in rows_dims:
        in_rows = min(in_rows or MOST_BLOCK, -(-trips[parallel[0]] // (2 * machine.threads)))
    block = [in_rows, in_columns, steps]
    return ContractionAttr.of(tile=tile, block=block if any(block) else [], pack=pack, parallel=parallel)


def _rows_of_block(machine: Machine, height: int, depth: int, size: int) -> int:
    """Rows of the other operand that take three quarters of L2, whole tiles of them, at most `MOST_BLOCK`."""
    room = machine.l2 * 3 // 4 // max(1, depth * size)
    return max(height, min(MOST_BLOCK, room) // height * height)


def _panels_of_group(panel_bytes: int, packs_rows: bool) -> int:
    """Panels that are packed together: more where each group copies the rows again, as long as they take a few MB."""
    most = ROWS_PACKED_PANELS if packs_rows else PANELS
    while most > PANELS and most * panel_bytes > GROUP_BYTES:
        most //= 2
    return most


def _columns_of_group(machine: Machine, columns: int, width: int, most: int, shared: bool) -> int:
    """Columns of a group of at most `most` panels: groups of equal size; where threads share them, so many that all have the same to do."""
    panels = max(1, -(-columns // width))
    groups = -(-panels // most)
    if not shared:
        return -(-panels // groups) * width
    threads = machine.threads
    counts = range(-(-groups // threads) * threads, 2 * groups + threads, threads)

    def busiest(count: int) -> int:
        """Panels of the thread that has most to do."""
        each = ceil(panels / count)
        return ceil(ceil(panels / each) / threads) * each

    return -(-panels // min(counts, key=busiest)) * width


def _parallel(loops: Sequence[tuple[int, ...]], trips: Mapping[int, int], machine: Machine, last: int | None, width: int) -> list[int]:
    """The outermost loop with enough iterations for the threads: batches, further columns, panels of columns, then rows."""
    if machine.threads == 1:
        return []
    chosen = [last if last in run else run[0] for run in loops]
    return [d for d in chosen if trips[d] // (width if d == last else 1) >= 2 * machine.threads][:1]


def _k_block(machine: Machine, height: int, depth: int, rows: int, columns: int, size: int, packed: bool) -> int:
    """Steps of k between visits of the results in memory, where operands do not stay in the cache between two uses; 0: all."""
    if rows <= SKINNY and not packed and depth * columns * size > machine.l2:
        return SKINNY_K_BLOCK
    if packed and depth * height * size > machine.l2 // 2:
        return LONG_K_BLOCK
    far = depth * (rows + columns) * size > machine.l2 // 2
    return K_BLOCK if far and depth >= 2 * K_BLOCK and rows * columns * size <= machine.l2 // 2 else 0


def _is_last_dim(dims: tuple[int, ...], operand: tuple[object, object], dim: int | None) -> bool:
    """Does the operand's last dimension run along group dimension `dim`?"""
    results = getattr(operand[1], "results", ())
    return bool(results) and {dims[l] for l in results[-1].used_dims()} == {dim}
