"""What the generator of contractions decides before it builds: roles of dimensions and operands, sizes of tile and blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import bf16, f32, i8, i16, i32
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineDimExpr

from gradir.dialects.upstream import arith
from gradir.lowering.groups import Group
from gradir.lowering.lower_kernels.binding import BoundOp, Kernel, Space, bind
from gradir.lowering.lower_kernels.collapse import collapse
from gradir.lowering.lower_kernels.dots import suits_dots
from gradir.lowering.lower_kernels.flat_rows import Flat, find_flat
from gradir.lowering.lower_kernels.panels import is_packed
from gradir.lowering.lower_kernels.tiles import NotCovered, stride_along, uses
from gradir.lowering.schedules.contraction import UNKNOWN, tile_of
from gradir.lowering.schedules.convolution import channels_across
from gradir.lowering.schedules.machine import Machine, element_bytes


@dataclass(frozen=True)
class Plan:
    """What the generator has decided: roles of dimensions and operands, sizes of the tile."""

    space: Space
    core: BoundOp
    epilogue: tuple[BoundOp, ...]
    a: int
    b: int
    n: int | None
    """The output's innermost dimension; None when there is one result in all."""
    row: int | None
    around: tuple[int, ...]
    """Loops outside of the panels: batch dimensions and further dimensions of b."""
    rows_around: tuple[int, ...]
    """Loops between panels and row tiles: further dimensions of a."""
    k: tuple[int, ...]
    height: int
    width: int
    pack: bool
    """Copy the column operand into panels."""
    pack_rows: bool
    """Copy the row operand so that it lies along k."""
    joined: int
    """Steps of k that one instruction adds up, of operands that are both packed; 1: one."""
    packed_element: Attribute
    """What packed operands hold."""
    rows: int
    """Rows that go through all panels of a group before the next ones; 0: all."""
    columns: int
    """Columns of one group (of one task, where columns are shared by threads); 0: all."""
    parallel: int | None
    dots: bool
    """Sum along k in vectors instead of along n."""
    k_block: int
    """Steps of the outermost k loop between visits of the results in memory; 0: all at once."""
    k_around: tuple[int, ...] = ()
    """Further k loops outside of everything, one step at a time, where one such step is more than a block."""
    panels: bool = False
    """The column operand was packed before, whole panels of the tile's width."""
    flat: Flat | None = None
    """Rows of tiles are positions across the ends of lines; then `row` is the place in a line, and its line the last of `rows_around`."""
    turned: bool = False
    """Results lie side by side along `row`: tiles wait in scratch memory until a line is complete, which is turned on its way out."""


def make_plan(kernel: Kernel, group: Group, machine: Machine) -> Plan:
    """Roles of the dimensions, and the schedule's sizes fitted to them."""
    if group.contraction is None:
        raise NotCovered("a kernel that says contraction and holds none")
    space = bind(kernel, group)
    position = group.contraction.index
    space = _collapsed(kernel, space, group)
    core = space.ops[position]
    epilogue = tuple(op for k, op in enumerate(space.ops) if k != position)
    if core.combination is None or not isinstance(core.combination.term.owner, arith.MulfOp | arith.MuliOp):
        raise NotCovered("a contraction that is no sum of products")
    if not all(isinstance(e, AffineDimExpr) or e.used_dims() == set() for e in core.output.map.results):
        raise NotCovered("an output that is read through sums")
    output = [d for d in range(len(space.extents)) if d in uses(core.output.map)]
    k = tuple(d for d in range(len(space.extents)) if d in core.reduced and space.extents[d] != 1)
    schedule = kernel.schedule
    parallel = next((space.place[d] for d in schedule.field("parallel") if d in space.place), None)
    if not output:
        if not suits_dots(core, k):
            raise NotCovered("one result of operands that do not lie side by side")
        return Plan(space, core, epilogue, 0, 1, None, None, (), (), k, 1, 1, False, False, 1, core.element, 0, 0, None, True, 0)
    n = max(output)
    across = channels_across(group) if core.init is not None and not (len(block := schedule.field("block")) == 3 and block[2]) else None
    turned = across is not None and space.place[across] in output
    n = space.place[across] if across is not None and turned else n
    a, b = (0, 1) if n in uses(core.inputs[1].map) else (1, 0)
    if n not in uses(core.inputs[b].map):
        raise NotCovered("no operand varies along the innermost dimension")
    tile = schedule.field("tile")
    flat = _flat(kernel, space, core, a, b, k, n, parallel)
    row = flat.place if flat is not None else max(output) if turned else _row_dim(space, core, a, b, output, n)
    used_a, used_b = uses(core.inputs[a].map), uses(core.inputs[b].map)
    others = [d for d in output if d not in (n, row)]
    rows_around = tuple(d for d in others if d in used_a and d not in used_b)
    around = tuple(d for d in others if d not in rows_around)
    if len(tile) < 2:
        rows, width = space.extents[row] if row is not None else 1, space.extents[n]
        known = [e if isinstance(e, int) else UNKNOWN for e in (rows, width)]
        tile = tile_of(machine, element_bytes(core.element), *known)
    height = 1 if row is None else tile[0]
    pack = 1 in schedule.field("pack") and n not in used_a and bool(k)
    dots = not pack and n not in used_a and stride_along(core.inputs[b], n) != 1 and suits_dots(core, k)
    if pack:
        k = _ordered(core, a, k)
    block = schedule.field("block")
    k_around, k, k_block = ((), k, 0) if dots else _k_blocks(space, k, block)
    alone = row is not None and len(k) == 1 and not rows_around
    pack_rows = 0 in schedule.field("pack") and pack and alone and row not in used_b
    joined = tile[2] if len(tile) > 2 and pack_rows else 1
    packed_element = core.element
    if joined > 1:
        packed_element = joined_element(core) or core.element
        joined = joined if packed_element != core.element else 1
    width = tile[1]
    rows, columns = (block[0], block[1]) if len(block) == 3 else (0, 0)
    if rows_around:
        rows = 0
    columns = -(-columns // width) * width
    if not columns and (pack or parallel == n):
        columns = width
    panels = not pack and len(k) == 1 and not k_block and is_packed(core.inputs[b].map, n, width)
    return Plan(
        space, core, epilogue, a, b, n, row, around, rows_around, k, height, width, pack, pack_rows, joined, packed_element, rows, columns,
        parallel, dots, k_block, k_around, panels, flat if not k_block and not dots else None, turned,
    )  # fmt: skip


def _flat(kernel: Kernel, space: Space, core: BoundOp, a: int, b: int, k: tuple[int, ...], n: int, parallel: int | None) -> Flat | None:
    """Positions across the ends of lines as rows: where the whole sum is made at once, and threads share neither lines nor places."""
    tile, block = kernel.schedule.field("tile"), kernel.schedule.field("block")
    assert core.combination is not None
    body = cast("Any", core.op).body.block
    plain = all(v.owner is body for v in cast("Any", core.combination.term.owner).operands)
    if len(tile) != 2 or (len(block) == 3 and block[2]) or not k or core.init is None or not plain:
        return None
    found = find_flat(space, core, a, b, k, n, tile[0])
    return found if found is not None and parallel not in (found.line, found.place) else None


def joined_element(core: BoundOp) -> Attribute | None:
    """What instructions that add up products of neighbours read: 16-bit integers for i8 and i16, bf16; None for other products."""
    assert core.combination is not None
    factors = cast("Any", core.combination.term.owner).operands
    block = cast("Any", core.op).body.block
    elements = {o.element for o in core.inputs}
    extended = all(f.owner is not block and type(f.owner) in (arith.ExtSIOp, arith.ExtUIOp) for f in factors)
    direct = all(f.owner is not block and f.owner.operands[0].owner is block for f in factors)
    if core.element == i32 and extended and direct and elements <= {i8}:
        return i16
    signed = all(type(f.owner) is arith.ExtSIOp for f in factors)
    if core.element == i32 and extended and direct and signed and elements <= {i8, i16}:
        return i16
    widened = direct and all(type(f.owner) is arith.ExtFOp for f in factors)
    return bf16 if core.element == f32 and widened and elements == {bf16} else None


def _ordered(core: BoundOp, a: int, k: tuple[int, ...]) -> tuple[int, ...]:
    """The k loops in the order in which the unpacked operand lies in memory: its fastest one innermost."""
    strides = {d: stride_along(core.inputs[a], d) for d in k}
    return tuple(sorted(k, key=lambda d: -abs(strides[d] or 0))) if None not in strides.values() else k


def _k_blocks(space: Space, k: tuple[int, ...], block: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """(k loops outside of everything, the others, steps of the outermost of these that make about `block[2]` steps of all of them).

    No steps: all at once.
    """
    extents = [e for d in k if isinstance(e := space.extents[d], int)]
    if len(block) != 3 or not block[2] or not k or len(extents) != len(k):
        return (), k, 0
    outside = 0
    while outside < len(k) - 1 and prod(extents[outside + 1 :]) >= 2 * block[2]:
        outside += 1
    first = extents[outside]
    steps = max(1, block[2] // max(1, prod(extents[outside + 1 :])))
    if steps >= first and not outside:
        return (), k, 0
    return k[:outside], k[outside:], -(-first // -(-first // steps))


def _collapsed(kernel: Kernel, space: Space, group: Group) -> Space:
    """`space` with neighbouring dimensions of one role joined where memory allows."""
    roles = group.contraction
    assert roles is not None
    for dims in (roles.k, roles.n, roles.m, roles.batch):
        places = sorted({space.place[d] for d in dims})
        runs: list[list[int]] = []
        for p in places:
            if runs and runs[-1][-1] == p - 1:
                runs[-1].append(p)
            else:
                runs.append([p])
        for run in reversed(runs):
            space = collapse(kernel, space, run)
    return space


def _row_dim(space: Space, core: BoundOp, a: int, b: int, output: Sequence[int], n: int) -> int | None:
    """The dimension of the tile's rows: along a and not along b, the innermost that splits evenly, else the longest."""
    used_a, used_b = uses(core.inputs[a].map), uses(core.inputs[b].map)
    found = [d for d in output if d != n and d in used_a and d not in used_b]
    if not found and n in used_a:
        found = [d for d in output if d != n and d in used_a ^ used_b]
    if not found:
        return None

    def length(d: int) -> int:
        extent = space.extents[d]
        return extent if isinstance(extent, int) else 1 << 30

    even = (d for d in reversed(found) if any(length(d) % size == 0 for size in (4, 5, 6)))
    return next(even, max(found, key=length))
