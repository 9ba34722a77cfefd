"""Schedules of elementwise kernels on a GPU: elements of a thread's access, accesses of a thread, threads of a block.

Memory is read and written 16 bytes at a time: a warp then takes 512 contiguous bytes. Several accesses of a thread are in flight together
where the space is large enough to fill the card anyway.
"""

from __future__ import annotations

from math import gcd, prod

from gradir.dialects.kernel import ElementwiseAttr
from gradir.dialects.target.cuda import CudaTargetAttr
from gradir.lowering.groups import Group
from gradir.lowering.schedules.machine import bytes_of
from gradir.lowering.schedules.streaming import has_polynomials

ACCESS = 16
"""Bytes of the widest access."""
MOST_LANES = 16
THREADS = 256
MOST_OPS = 12
"""Ops (a polynomial counts as four) beyond which one access of a thread is enough work, and more would cost registers."""
WAVES = 4
"""Blocks for every multiprocessor that there have to be before a thread takes a second access."""


def schedule_gpu_elementwise(group: Group, target: CudaTargetAttr) -> ElementwiseAttr:
    """tile = [accesses of a thread, elements of an access], block = [threads]."""
    extents = [group.extents[d] for d in group.space]
    sizes = [bytes_of(o.output) for o in group.ops] + [bytes_of(v) for o in group.ops for v, _ in o.inputs if v not in group.produced]
    known = [e for e in extents if isinstance(e, int)]
    last = next((e for e in reversed(extents) if e != 1), 1)
    lanes = min(MOST_LANES, ACCESS // min(sizes)) if sizes else 1
    lanes = gcd(lanes, last) if isinstance(last, int) and last else 1
    accesses = 1
    if len(known) == len(extents):
        work = len(group.ops) + 3 * sum(has_polynomials(o.op) for o in group.ops)
        vectors = prod(known) // lanes
        while accesses < 4 and work * 2 * accesses <= MOST_OPS and vectors >= 2 * accesses * THREADS * WAVES * target.sms:
            accesses *= 2
        lanes = _fewer(lanes, vectors * lanes, target)
    return ElementwiseAttr.of(tile=[accesses, lanes], block=[THREADS])


def _fewer(lanes: int, points: int, target: CudaTargetAttr) -> int:
    """A small space is spread over more threads: latency counts, not bandwidth."""
    while lanes > 1 and points // lanes < target.sms * THREADS // 4:
        lanes //= 2
    return lanes


def reason_gpu_elementwise(group: Group, target: CudaTargetAttr, schedule: ElementwiseAttr) -> str:
    """`a thread takes 2 accesses of 4 elements, 256 threads a block`"""
    accesses, lanes = (1, 1, *schedule.field("tile"))[-2:]
    many = f"{accesses} accesses of {lanes} elements" if accesses > 1 else f"{lanes} elements at once" if lanes > 1 else "one element"
    return f"a thread takes {many}, {(*schedule.field('block'), THREADS)[0]} threads a block"
