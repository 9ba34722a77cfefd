"""How many blocks of a kernel fit a multiprocessor, and what limits them: NVIDIA's occupancy calculation.

Reads the tables of `gradir.dialects.target.cuda_facts`; what a kernel needs comes from its schedule or from `ptxas`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from gradir.dialects.target.cuda_facts import REGISTER_UNIT, WARP, Architecture, architecture

Limit: TypeAlias = Literal["warps", "blocks", "registers", "shared memory", "nothing fits"]


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps that are resident on one multiprocessor, their share of its warps, and what allows no more."""

    blocks: int
    warps: int
    share: float
    limit: Limit


def occupancy(arch: str, threads: int, registers: int, shared: int = 0) -> Occupancy:
    """Of blocks of `threads` threads with `registers` registers each and `shared` bytes a block; 0 blocks where one does not fit."""
    facts = architecture(arch)
    warps = -(-threads // WARP)
    if threads > facts.threads_per_block or registers > facts.registers_per_thread or shared > facts.shared_per_block:
        return Occupancy(0, 0, 0.0, "nothing fits")
    by: dict[Limit, int] = {
        "warps": facts.warps_per_sm // warps,
        "blocks": facts.blocks_per_sm,
        "registers": _by_registers(facts, warps, registers),
        "shared memory": facts.shared_per_sm // max(1, shared + facts.shared_reserved),
    }
    limit = min(by, key=lambda name: by[name])
    blocks = by[limit]
    if not blocks:
        return Occupancy(0, 0, 0.0, "nothing fits")
    return Occupancy(blocks, blocks * warps, blocks * warps / facts.warps_per_sm, limit)


def _by_registers(facts: Architecture, warps: int, registers: int) -> int:
    """A warp's registers are rounded up to the unit; the file has four parts, and a warp lives in one."""
    if not registers:
        return facts.blocks_per_sm
    of_warp = -(-registers * WARP // REGISTER_UNIT) * REGISTER_UNIT
    warps_at_once = facts.registers_per_sm // 4 // of_warp * 4
    return warps_at_once // warps
