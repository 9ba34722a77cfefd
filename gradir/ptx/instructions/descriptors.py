"""Matrices of `wgmma` in shared memory: where a descriptor says that their pieces of 16 bytes lie, and what is wrong with reading them.

The layouts are those of the PTX ISA, section "Shared Memory Matrix Layout": rows of 8 by 16 bytes, or rows as long as a swizzle, eight of
which make an atom. K-major: a piece runs along k; MN-major (16-bit types): along the rows of A or the columns of B.
"""

from __future__ import annotations

import numpy as np

from gradir.ptx.instructions.forms import Array
from gradir.ptx.machine import Machine
from gradir.ptx.reports import Kind
from gradir.ptx.state import Gang
from gradir.ptx.tensor_maps import PIECE, swizzled
from gradir.ptx.warpgroups import WARPS

_SWIZZLES = (0, 128, 64, 32)


def _field(descriptors: Array, low: int, bits: int) -> Array:
    return (descriptors >> np.uint64(low) & np.uint64((1 << bits) - 1)).astype(np.int64)


def places(descriptors: Array, extent: int, depth: int, turned: bool) -> tuple[Array, Array]:
    """[group, line, piece] addresses, and the swizzle of each group: lines run along k where `turned`, else along rows or columns.

    `extent`: rows or columns; `depth`: of k, in pieces or elements.
    """
    start, leading, stride = (_field(descriptors, low, 14) << 4 for low in (0, 16, 32))
    base, modes = _field(descriptors, 49, 3), _field(descriptors, 62, 2)
    found = np.empty((len(descriptors), depth if turned else extent, extent // 8 if turned else depth), np.int64)
    widths = np.array(_SWIZZLES)[modes]
    lines, pieces = np.arange(found.shape[1])[:, None], np.arange(found.shape[2])[None, :]
    for k in range(len(descriptors)):
        width = int(widths[k])
        row = lines % 8 * (width or PIECE)
        if width == 0:
            far, near = (leading[k], stride[k]) if turned else (stride[k], leading[k])
            found[k] = start[k] + lines // 8 * far + row + pieces * near
            continue
        atom = width // PIECE
        across = pieces % atom * PIECE + pieces // atom * leading[k] if turned else pieces * PIECE
        found[k] = swizzled(start[k] + lines // 8 * stride[k] + row + across, width, int(base[k]))
    return found, widths


def read_matrix(machine: Machine, gang: Gang, descriptors: Array, extent: int, depth: int, turned: bool, times: Array) -> Array:
    """[group, line, piece, 16] bytes for the warpgroups of a gang; what is wrong with them is reported."""
    at, widths = places(descriptors, extent, depth, turned)
    blocks = machine.blocks
    groups = len(at)
    first = gang.warps[::WARPS]
    block = blocks.block_of(first)
    bad: Array = np.any((at < 0) | (at + PIECE > blocks.shared_bytes), axis=(1, 2))
    _report(machine, gang, "out of bounds", bad, f"the descriptor names bytes behind the {blocks.shared_bytes} of shared memory")
    at = np.where(bad[:, None, None], 0, at)
    flat = (block[:, None, None] * blocks.shared.shape[1] + at).reshape(groups, -1)
    busy, copies = machine.pending.touched(flat, PIECE)
    _report(machine, gang, "unwaited copy", np.asarray(busy.any(axis=1)), "a copy is still on its way to the matrix", copies[busy])
    whole = flat // PIECE
    pairs = blocks.defined.reshape(-1).view(np.uint64).reshape(-1, 2)
    known = (pairs[whole] == 0x0101010101010101).all(2)
    _report(machine, gang, "uninitialised read", np.asarray((~known & ~busy).any(axis=1)), "nobody wrote some bytes of the matrix")
    _check_layout(machine, gang, whole.reshape(at.shape), widths, turned)
    _check_order(machine, gang, block, at.reshape(groups, -1), times)
    return blocks.shared.reshape(-1, PIECE)[whole].reshape(*at.shape, PIECE)


def _report(machine: Machine, gang: Gang, kind: Kind, bad: Array, message: str, others: Array | None = None) -> None:
    if bad.any():
        lanes = np.repeat(bad, WARPS)[:, None] & gang.mask
        machine.report(kind, gang, lanes, message, int(others[0]) if others is not None and len(others) else None)


def _check_order(machine: Machine, gang: Gang, block: Array, at: Array, times: Array) -> None:
    """Is what is read ordered after its writes for all four warps, with a fence after those of other instructions?"""
    history = machine.history
    groups, count = at.shape
    least = history.clocks[gang.warps].reshape(groups, WARPS, -1).min(1)
    # what a warp of the group has done itself the others must know of too
    agent = agents_of(machine, gang.warps[::WARPS])
    rows = np.repeat(np.arange(groups), count)
    found = history.by_agent(least[rows], agent[rows], times[rows], block[rows], at.reshape(-1), PIECE, machine.position, writes=False)
    races, missing = found.races.reshape(groups, count), found.unfenced.reshape(groups, count)
    others = found.others.reshape(groups, count)
    _report(machine, gang, "race", np.asarray(races.any(axis=1)), "reads a matrix that others may still write", others[races])
    what = "no fence.proxy.async between a store to shared memory and the product that reads it"
    _report(machine, gang, "missing fence", np.asarray(missing.any(axis=1)), what, others[missing])


def agents_of(machine: Machine, warps: Array) -> Array:
    """Under which number the clocks know the warpgroup of each of these warps, as a reader of matrices."""
    blocks = machine.blocks
    per_block = -(-blocks.per_block // WARPS)
    return blocks.block_of(warps) % blocks.cluster_size * per_block + warps % blocks.per_block // WARPS


def _check_layout(machine: Machine, gang: Gang, whole: Array, widths: Array, turned: bool) -> None:
    """What a tensor copy laid out has to be read with its swizzle, and neighbours of the box as neighbours of the matrix."""
    layout = machine.bulk.layout
    assert layout is not None
    ticket = layout.ticket[whole]
    if not ticket.any():
        return
    swizzle = layout.swizzle[whole]
    other: Array = np.any((ticket > 0) & (swizzle != widths[:, None, None]), axis=(1, 2))
    if other.any():
        found = int(swizzle[(ticket > 0) & (swizzle != widths[:, None, None])][0])
        message = f"the tensor copy laid its rows out with a swizzle of {found} bytes, the descriptor says {int(widths[other][0])}"
        _report(machine, gang, "bad layout", other, message)
        return
    row, column = layout.row[whole], layout.column[whole]
    same = (ticket[:, 1:] == ticket[:, :-1]) & (ticket[:, 1:] > 0)
    apart = same & ((row[:, 1:] - row[:, :-1] != 1) | (column[:, 1:] != column[:, :-1]))
    _report(
        machine,
        gang,
        "bad layout",
        np.any(apart, axis=(1, 2)),
        "neighbouring rows of the matrix are no neighbours in the box that was copied",
    )
    pieces = np.arange(whole.shape[2] - 1)
    for k, width in enumerate(widths):
        if width == 0:
            continue
        within = (pieces + 1) % (int(width) // PIECE) != 0 if turned else np.ones(len(pieces), np.bool_)
        beside = (ticket[k, :, 1:] == ticket[k, :, :-1]) & (ticket[k, :, 1:] > 0) & within
        wrong = beside & ((row[k, :, 1:] != row[k, :, :-1]) | (column[k, :, 1:] - column[k, :, :-1] != 1))
        one = np.arange(len(widths)) == k
        _report(machine, gang, "bad layout", one & wrong.any(), "neighbouring pieces of a row are no neighbours in the box that was copied")
