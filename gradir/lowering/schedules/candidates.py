"""Schedules worth measuring for a kernel: what the tuner tries beside the heuristic's choice.

Every candidate computes the same; which of them a generator does not take it finds out by itself (it falls back to plain loops, and the
measurement says how slow that is). Fields that a kind has and that are not varied here keep the heuristic's value, so that a new field of a
schedule needs no change here to survive tuning. The order is that of promise: a search out of time has tried the likeliest first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from math import prod

from gradir.dialects.kernel import LoopsAttr, Schedule
from gradir.lowering.groups import Group
from gradir.lowering.schedules.contraction import UNKNOWN
from gradir.lowering.schedules.machine import Machine, bytes_of, extent_or
from gradir.lowering.schedules.streaming import results_of

MOST = 64
"""Candidates of one kernel."""

SPARE_REGISTERS = 3
"""Registers that a contraction needs beside its accumulators: one for an operand's row, one broadcast element, one to spare."""

DEPTHS = (0, 128, 256, 512, 1024, 2048)
"""Steps of k between visits of the results; 0: all of them."""

Values = Mapping[str, Sequence[int]]


def candidates(group: Group, machine: Machine, chosen: Schedule) -> list[Schedule]:
    """Schedules for the group of a kernel whose heuristic chose `chosen`, which comes first; no two are equal."""
    variants = _VARIANTS.get(chosen.kind)
    if variants is None:
        return [chosen]
    fields = {name: chosen.field(name) for name in chosen.FIELDS}
    found: dict[Schedule, None] = {chosen: None}
    for changed in variants(group, machine, fields):
        known = {name: value for name, value in changed.items() if name in chosen.FIELDS}
        found[type(chosen).of(**{**fields, **known})] = None
    if chosen.kind != "loops" and len(group.ops) == 1:
        found[LoopsAttr.of(tile=[machine.lanes_of(_widest(group))])] = None
    return list(islice(found, MOST))


def _contraction(group: Group, machine: Machine, chosen: Values) -> Iterator[Values]:
    """Tiles first (all that registers hold, near the chosen one first), then packing, visits of the results, threads."""
    roles = group.contraction
    assert roles is not None
    size = bytes_of(group.ops[roles.index].output)
    extents = [extent_or(e, UNKNOWN) for e in group.extents]
    lanes = machine.lanes_of(size)
    last = next((d for d in reversed(group.space) if extents[d] != 1), None)
    columns = extents[last] if last is not None else 1
    depth = prod(extents[d] for d in roles.k)
    tiles = [
        (rows, width * lanes)
        for width in (1, 2, 4, 8)
        for rows in range(1, 25)
        if rows * width <= machine.registers - SPARE_REGISTERS and (width == 1 or (width // 2) * lanes < columns)
    ]
    used = prod((*chosen["tile"], 1)) // lanes
    tiles.sort(key=lambda tile: (abs(tile[0] * tile[1] // lanes - used), tile != tuple(chosen["tile"]), -tile[1]))
    packs: list[Sequence[int]] = [chosen["pack"], [] if chosen["pack"] else [1]]
    depths = [d for d in DEPTHS if d < depth]
    parallels = _parallels(group, machine, extents, chosen)
    best = tiles[:6]
    for pack in packs:
        yield {"pack": pack}
    for parallel in parallels:
        yield {"parallel": parallel}
    for tile in best:
        yield {"tile": tile}
    for block in _blocks(chosen["block"], depths):
        yield {"block": block}
    for block in _blocks(chosen["block"], depths):
        yield {"block": block, "pack": packs[1]}
    for tile in best:
        for pack in packs[1:]:
            yield {"tile": tile, "pack": pack}
    for tile in tiles[6:]:
        yield {"tile": tile}
    for tile in best:
        for block in _blocks(chosen["block"], depths):
            yield {"tile": tile, "block": block}


def _blocks(chosen: Sequence[int], depths: Sequence[int]) -> list[list[int]]:
    """[rows, columns, steps of k] of cache blocks: each of the chosen ones halved, doubled and left out, and other depths."""
    rows, columns, steps = (*chosen, 0, 0, 0)[:3]
    found = [[rows, columns, depth] for depth in depths]
    found += [[changed, columns, steps] for changed in _near(rows)]
    found += [[rows, changed, steps] for changed in _near(columns)]
    found.append([0, 0, 0])
    return [block if any(block) else [] for block in found]


def _near(size: int) -> list[int]:
    return [size // 2, 2 * size, 0] if size > 1 else []


def _elementwise(group: Group, machine: Machine, chosen: Values) -> Iterator[Values]:
    """Registers of a step, threads, stores past the cache."""
    lanes = machine.lanes_of(_widest(group))
    extents = [extent_or(e, UNKNOWN) for e in group.extents]
    for parallel in _parallels(group, machine, extents, chosen):
        for stream in _streams(group, chosen):
            for registers in (1, 2, 4, 8):
                yield {"tile": [lanes * registers], "parallel": parallel, "stream": stream}


def _rows(group: Group, machine: Machine, chosen: Values) -> Iterator[Values]:
    """Accumulators of a sum, threads, stores past the cache."""
    lanes = (*chosen["tile"], machine.lanes_of(_widest(group)))[1]
    roles = group.rows
    assert roles is not None
    independent = bool(roles.outer) and not any(section.form == "reduce_outer" for section in roles.sections)
    parallels = [chosen.get("parallel", ()), *([(), (roles.outer[0],)] if independent and machine.threads > 1 else [])]
    for parallel in dict.fromkeys(map(tuple, parallels)):
        for stream in _streams(group, chosen):
            for count in (1, 2, 4, 8):
                yield {"tile": [count, lanes], "parallel": parallel, "stream": stream}


def _loops(group: Group, machine: Machine, chosen: Values) -> Iterator[Values]:
    """Lanes of a step."""
    lanes = machine.lanes_of(_widest(group))
    for width in (lanes, 2 * lanes, 4 * lanes, 1):
        yield {"tile": [width]}


def _chain(group: Group, machine: Machine, chosen: Values) -> Iterator[Values]:
    """Rows of a block."""
    rows = (*chosen["block"], 0)[0]
    for changed in (2 * rows, rows // 2, 4 * rows, rows // 4):
        if changed:
            yield {"block": [changed, *chosen["block"][1:]]}


def _parallels(group: Group, machine: Machine, extents: Sequence[int], chosen: Values) -> list[tuple[int, ...]]:
    """The chosen loop, none, and each other loop of the output with trips for all threads."""
    found: dict[tuple[int, ...], None] = {tuple(chosen.get("parallel", ())): None}
    if machine.threads > 1:
        found[()] = None
        found |= {(d,): None for d in group.space if extents[d] >= 2 * machine.threads}
    return list(found)


def _streams(group: Group, chosen: Values) -> list[tuple[int, ...]]:
    """Results written past the cache: as chosen, none, all (a kind without that field has one choice)."""
    if "stream" not in chosen:
        return [()]
    return list(dict.fromkeys([tuple(chosen["stream"]), (), tuple(results_of(group))]))


def _widest(group: Group) -> int:
    return max(bytes_of(op.output) for op in group.ops)


_VARIANTS: Mapping[str, Callable[[Group, Machine, Values], Iterator[Values]]] = {
    "contraction": _contraction,
    "elementwise": _elementwise,
    "rows": _rows,
    "loops": _loops,
    "chain": _chain,
}

__all__ = ["MOST", "candidates"]
