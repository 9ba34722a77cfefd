"""What a kernel should reach on a card that nobody ran it on: its bound, and the share of it that its form can reach.

The shares are assumptions, stated here and on the page; measurements replace them. Each launch costs `LAUNCH` seconds; a grid that does not
fill its last round of blocks loses what stands idle; memory is as fast as the bytes that resident warps have under way allow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gradir.dialects.target.cuda_facts import Card, architecture
from gradir.driver.explain.cuda import CudaExplanation, CudaRow, LaunchRow

LAUNCH = 2.5e-6
"""Seconds from one kernel to the next in a stream."""
LATENCY = 7e-7
"""Seconds from a request to the memory to its answer."""
COPY = 0.90
"""Share of the data sheet's bandwidth that copies reach (4.3 of 4.8 TB/s)."""
UNDER_WAY = 32
"""Bytes that a thread has asked for at once: two accesses of 16."""
LIBRARY = 0.75
"""Share of the data sheet's peak that cuBLAS reaches on large products of bf16 (740 of 989 TF/s)."""
FORMS: Mapping[str, float] = {"wgmma": 0.95 * LIBRARY, "mma": 0.60 * LIBRARY, "fma": 0.60}
"""Share of the peak by the instruction that multiplies: warp groups with a ring of tensor copies, warps with cp.async, plain threads."""


@dataclass(frozen=True)
class Form:
    """What the PTX of a kernel shows: how it multiplies, products per tile in its text, stages of asynchronous copies."""

    unit: str
    instructions: int
    stages: int


def forms(ptx: str) -> dict[str, Form]:
    """The form of every kernel of a PTX text."""
    found: dict[str, Form] = {}
    for part in re.split(r"\.visible \.entry ", ptx)[1:]:
        name, _, body = part.partition("(")
        unit = next((unit for unit, word in (("wgmma", "wgmma.mma_async"), ("mma", "mma.sync")) if word in body), "fma")
        words = {"wgmma": r"wgmma\.mma_async", "mma": r"mma\.sync", "fma": r"fma\.rn\.(?:f32|f64)|fma\.rn\.f32x2"}
        groups = [int(n) for n in re.findall(r"cp\.async\.wait_group\s+(\d+)", body)]
        stages = max(groups) + 2 if groups else len(set(re.findall(r"mbarrier\.init", body))) * 4 if "cp.async.bulk" in body else 1
        found[name.strip()] = Form(unit, len(re.findall(words[unit], body)), stages)
    return found


def filled(launch: LaunchRow, card: Card) -> float:
    """The part of the card that is busy over the rounds of a grid: 1 where the last round is full, or there are many."""
    blocks = launch.blocks
    if not blocks or not launch.block or launch.occupancy is None:
        return 1.0
    threads = 1
    for n in launch.block:
        threads *= n or 1
    resident = max(1, round(launch.occupancy * architecture(card.arch).threads_per_sm / threads))
    at_once = card.sms * resident
    if blocks >= at_once:
        rounds = -(-blocks // at_once)
        return blocks / (rounds * at_once)
    return min(1.0, blocks / card.sms)


def memory_share(launch: LaunchRow, card: Card) -> float:
    """Share of the bandwidth: what copies reach, or less where too few bytes are under way."""
    if launch.occupancy is None:
        return COPY
    under_way = launch.occupancy * architecture(card.arch).threads_per_sm * UNDER_WAY * card.sms
    return COPY * min(1.0, under_way / (LATENCY * card.bandwidth))


def kernel_seconds(row: CudaRow, card: Card, form: Mapping[str, Form]) -> float | None:
    """Expected seconds of all calls of a kernel; None where its sizes are not known."""
    if row.flops is None or row.bytes is None or not row.launches:
        return None
    calls = row.calls or 1
    main = max(row.launches, key=lambda launch: (form[launch.function].instructions, launch.blocks or 0))
    compute = row.flops / (card.peak(row.element) * FORMS[form[main.function].unit])
    memory = row.bytes / (card.bandwidth * memory_share(main, card))
    return max(compute, memory) / filled(main, card) + LAUNCH * len(row.launches) * calls


def program_seconds(found: CudaExplanation, card: Card, form: Mapping[str, Form]) -> float | None:
    """Expected seconds of a program."""
    total = 0.0
    for row in found.rows:
        seconds = kernel_seconds(row, card, form)
        if seconds is None:
            return None
        total += seconds
    return total + LAUNCH * found.copies
