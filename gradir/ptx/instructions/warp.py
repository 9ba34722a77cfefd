"""What lanes of a warp tell each other: shuffles, votes, matches, reductions, the mask of active lanes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradir.ptx.instructions.forms import Array, has, types_of
from gradir.ptx.machine import Machine, Step
from gradir.ptx.state import LANES, Gang
from gradir.ptx.syntax import Instruction, Operand, Pair
from gradir.ptx.types import WIDTHS

_LANE = np.arange(LANES, dtype=np.int64)[None, :]
_BITS = (np.uint64(1) << np.arange(LANES, dtype=np.uint64))[None, :]


def word_of(lanes: Array) -> Array:
    """[warp, 1] bit masks of flags [warp, lane]."""
    return np.where(lanes, _BITS, np.uint64(0)).sum(1, dtype=np.uint64)[:, None].astype(np.uint32)


def members(machine: Machine, gang: Gang, mask: Array, operand: Operand) -> Array:
    """[warp, lane]: who takes part in a `.sync` instruction. Lanes that are named and are not here make it an error."""
    named = np.broadcast_to(machine.read(gang, operand, "u32"), mask.shape)
    first = np.where(mask, named, 0).max(1)[:, None].astype(np.uint64)
    wanted = (first & _BITS) != 0
    absent = wanted & machine.alive[gang.warps] & ~mask
    if absent.any():
        machine.report("divergent sync", gang, mask & absent.any(1, keepdims=True), "lanes that the mask names are elsewhere")
    unnamed = mask & ~wanted
    if unnamed.any():
        machine.report("divergent sync", gang, unnamed, "the mask does not name the lane that executes it")
    return wanted & mask


def compile_shfl(op: Instruction) -> Step | None:
    """`shfl.sync.{up,down,bfly,idx}.b32 d[|p], a, b, c, mask`."""
    mode = next(part for part in op.opcode if part in ("up", "down", "bfly", "idx"))
    destination, a, b, c, *who = op.operands

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        taking = members(machine, gang, mask, who[0]) if who else mask
        value = np.broadcast_to(machine.read(gang, a, "u32"), mask.shape)
        by = np.broadcast_to(machine.read(gang, b, "u32"), mask.shape).astype(np.int64) & 31
        clamp = np.broadcast_to(machine.read(gang, c, "u32"), mask.shape).astype(np.int64)
        segment, bound = clamp >> 8 & 31, clamp & 31
        low, high = _LANE & segment, (_LANE & segment) | (bound & ~segment)
        source = {"up": _LANE - by, "down": _LANE + by, "bfly": _LANE ^ by, "idx": low | (by & ~segment)}[mode]
        inside = source >= high if mode == "up" else source <= high
        source = np.where(inside, source, _LANE) & 31
        missing = inside & mask & ~np.take_along_axis(taking, source, 1)
        if missing.any():
            machine.report("divergent sync", gang, missing, "reads from a lane that does not take part")
        found = np.take_along_axis(value, source, 1)
        if isinstance(destination, Pair):
            machine.write(gang, mask, destination.first, found)
            machine.write(gang, mask, destination.second, inside)
        else:
            machine.write(gang, mask, destination, found)

    return step


def compile_vote(op: Instruction) -> Step | None:
    """`vote.sync.{all,any,uni}.pred` and `vote.sync.ballot.b32`."""
    destination, source, *who = op.operands
    mode = next(part for part in op.opcode if part in ("all", "any", "uni", "ballot"))

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        taking = members(machine, gang, mask, who[0]) if who else mask
        holds = np.broadcast_to(machine.read(gang, source, "pred"), mask.shape) & taking
        count, total = holds.sum(1)[:, None], taking.sum(1)[:, None]
        results: dict[str, Any] = {
            "all": count == total,
            "any": count > 0,
            "uni": (count == total) | (count == 0),
            "ballot": word_of(holds),
        }
        machine.write(gang, mask, destination, np.broadcast_to(results[mode], mask.shape))

    return step


def compile_match(op: Instruction) -> Step | None:
    """`match.any.sync` and `match.all.sync`: lanes with equal values."""
    kind = f"u{WIDTHS[types_of(op)[-1]]}"
    destination, source, who = op.operands

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        taking = members(machine, gang, mask, who)
        value = np.broadcast_to(machine.read(gang, source, kind), mask.shape)
        equal = (value[:, :, None] == value[:, None, :]) & taking[:, None, :]
        words = np.where(equal, _BITS[None], np.uint64(0)).sum(2, dtype=np.uint64).astype(np.uint32)
        if has(op, "any"):
            machine.write(gang, mask, destination, words)
            return
        everyone = word_of(taking)
        same = words == everyone
        first, second = (destination.first, destination.second) if isinstance(destination, Pair) else (destination, None)
        machine.write(gang, mask, first, np.where(same, everyone, np.uint32(0)))
        if second is not None:
            machine.write(gang, mask, second, same)

    return step


def compile_redux(op: Instruction) -> Step | None:
    """`redux.sync.{add,min,max,and,or,xor}` over the lanes that take part."""
    kind = types_of(op)[-1]
    destination, source, who = op.operands
    mode = next(part for part in op.opcode if part in ("add", "min", "max", "and", "or", "xor"))
    kind = "u32" if kind == "b32" else kind

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        taking = members(machine, gang, mask, who)
        value = np.broadcast_to(machine.read(gang, source, kind), mask.shape)
        functions: dict[str, Any] = {
            "add": np.add,
            "min": np.minimum,
            "max": np.maximum,
            "and": np.bitwise_and,
            "or": np.bitwise_or,
            "xor": np.bitwise_xor,
        }
        neutral = _neutral(mode, value.dtype)
        filled = np.where(taking, value, value.dtype.type(neutral))
        machine.write(
            gang, mask, destination, np.broadcast_to(functions[mode].reduce(filled, axis=1, dtype=value.dtype)[:, None], mask.shape)
        )

    return step


def _neutral(mode: str, dtype: np.dtype[Any]) -> Any:
    """What changes nothing in a reduction."""
    if mode in ("min", "max") and dtype.kind == "f":
        return np.inf if mode == "min" else -np.inf
    limits = np.iinfo(dtype)
    return {"min": limits.max, "max": limits.min, "and": -1 if dtype.kind == "i" else limits.max}.get(mode, 0)


def compile_activemask(op: Instruction) -> Step | None:
    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        machine.write(gang, mask, op.operands[0], np.broadcast_to(word_of(mask), mask.shape))

    return step


def compile_elect(op: Instruction) -> Step | None:
    """`elect.sync d|p, mask`: the lowest lane that takes part."""
    destination, who = op.operands

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        taking = members(machine, gang, mask, who)
        first = taking.argmax(1)[:, None]
        assert isinstance(destination, Pair)
        machine.write(gang, mask, destination.first, np.broadcast_to(first.astype(np.uint32), mask.shape))
        machine.write(gang, mask, destination.second, first == _LANE)

    return step


COMPILERS = {
    "shfl": compile_shfl, "vote": compile_vote, "match": compile_match, "redux": compile_redux, "activemask": compile_activemask,
    "elect": compile_elect,
}  # fmt: skip
