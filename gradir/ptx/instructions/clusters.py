"""Clusters of blocks: addresses of each other's shared memory, and their barrier. Plain accesses take such addresses as they are."""

from __future__ import annotations

import numpy as np

from gradir.ptx.instructions.accesses import RANK_BITS, in_space
from gradir.ptx.instructions.forms import Array, has, types_of
from gradir.ptx.machine import Machine, Step
from gradir.ptx.memory import BIAS, OFFSET_BITS, SHARED_WINDOW
from gradir.ptx.state import Gang
from gradir.ptx.syntax import Instruction, Name, Operand

_LOW = (1 << RANK_BITS) - 1


def _address(machine: Machine, gang: Gang, operand: Operand, kind: str) -> Array:
    if isinstance(operand, Name):
        return machine.address_of(gang, operand)
    return machine.read(gang, operand, kind).astype(np.int64)


def compile_mapa(op: Instruction) -> Step | None:
    """`mapa[.shared::cluster].{u32,u64} d, a, rank`: the same place in the shared memory of another block of the cluster."""
    destination, source, rank = op.operands
    kind, shared = types_of(op)[-1], has(op, "shared::cluster")

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        where = in_space(_address(machine, gang, source, kind)) & _LOW
        ranks = machine.read(gang, rank, "u32").astype(np.int64)
        beyond = mask & (np.broadcast_to(ranks, mask.shape) >= machine.blocks.cluster_size)
        machine.report("out of bounds", gang, beyond, f"the cluster has {machine.blocks.cluster_size} blocks")
        found = where | (ranks + 1) << RANK_BITS
        if not shared:
            found = found + (SHARED_WINDOW << OFFSET_BITS) + BIAS
        machine.write(gang, mask, destination, found.astype(np.uint64 if kind == "u64" else np.uint32))

    return step


def compile_getctarank(op: Instruction) -> Step | None:
    """`getctarank[.shared::cluster].{u32,u64} d, a`: whose shared memory an address is in."""
    destination, source = op.operands
    kind = types_of(op)[-1]

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        ranks = in_space(_address(machine, gang, source, kind)) >> RANK_BITS
        own = (machine.blocks.block_of(gang.warps) % machine.blocks.cluster_size)[:, None]
        machine.write(gang, mask, destination, np.where(ranks > 0, ranks - 1, own).astype(np.uint32))

    return step


def compile_cluster_barrier(op: Instruction) -> Step | None:
    """`barrier.cluster.arrive[.release|.relaxed]` and `barrier.cluster.wait[.acquire]`, by all threads of the cluster."""
    if not has(op, "cluster"):
        return None
    return _arrive(has(op, "relaxed")) if has(op, "arrive") else _wait


def _arrive(relaxed: bool) -> Step:
    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        missing: Array = np.any(machine.alive[gang.warps] & ~mask, axis=1)
        machine.report("divergent sync", gang, mask & missing[:, None], "some lanes of the warp are elsewhere")
        again = machine.cluster_arrivals[gang.warps, 0] > machine.cluster_arrivals[gang.warps, 1]
        machine.report("bad barrier", gang, mask & again[:, None], "arrives at the barrier of the cluster again without having waited")
        machine.cluster_arrivals[gang.warps, 0] += 1
        for warp in gang.warps:
            machine.cluster_told(int(warp), relaxed=relaxed)
        machine.history.tick(gang.warps)
        machine.wake("cluster", np.unique(_cluster(machine, gang.warps)))

    return step


def _cluster(machine: Machine, warps: Array) -> Array:
    return machine.blocks.block_of(warps) // machine.blocks.cluster_size


def _wait(machine: Machine, gang: Gang, mask: Array) -> None:
    peers = machine.history.peers
    waited = machine.cluster_arrivals[gang.warps, 1]
    idle = machine.cluster_arrivals[gang.warps, 0] == waited
    machine.report("bad barrier", gang, mask & idle[:, None], "waits at the barrier of the cluster without having arrived")
    living = machine.alive.any(1).reshape(-1, peers)
    arrived = np.where(living, machine.cluster_arrivals[:, 0].reshape(-1, peers), np.iinfo(np.int64).max).min(1)
    clusters = _cluster(machine, gang.warps)
    late = (arrived[clusters] <= waited) & ~idle
    keys = np.broadcast_to(clusters[:, None], gang.mask.shape)
    what = "waits at the barrier of its cluster, and some warps do not come"
    if late.all():
        machine.park("cluster", gang, keys, what)
    go = gang.part(np.flatnonzero(~late))
    for warp in go.warps:
        machine.cluster_seen(int(warp))
    machine.cluster_arrivals[go.warps, 1] += 1
    if late.any():
        machine.hold("cluster", gang.part(np.flatnonzero(late)), keys[late], what)
        machine.pass_on(go)


COMPILERS = {"mapa": compile_mapa, "getctarank": compile_getctarank, "barrier": compile_cluster_barrier}
