"""How fast a kernel could be on this machine: the larger of the time for its operations and the time for its bytes.

The limits are measured (`gradir.driver.limits`) and kept in the cache directory; a bound takes the bandwidth of the smallest memory that
holds what the call touches, of reads, writes or copies after what it does. A machine that is busy while it is measured looks slower than it
is: a kernel that is faster than its bound has the limits measured again, up to `ROUNDS` times, and the best of all are kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from gradir.dialects.target import CpuTargetAttr
from gradir.driver.cache import default_directory, digest
from gradir.driver.limits import Limits, measure_limits
from gradir.driver.versions import versions
from gradir.runtime.artefact import write_atomically

MOSTLY = 0.9
"""A call whose bytes are to this part reads (or writes) is bound by the bandwidth of reads (or writes) alone."""


ROUNDS = 3


@dataclass(frozen=True)
class Bound:
    """The least seconds of a call, and what takes them: `compute`, or a place in memory."""

    seconds: float
    by: str


def bound_of(flops: int | None, read: int, written: int, dtype: str, threads: int, limits: Limits) -> Bound | None:
    """The roofline of one call; None for a call that neither computes nor moves anything."""
    threads = max((t for _, t in limits.flops if t <= threads), default=1)
    moved = read + written
    compute = (flops or 0) / limits.flops[dtype, threads]
    place = next((p for p, size in limits.sizes.items() if moved <= 2 * size), "memory")  # a footprint is half of a cache
    kinds = ("read",) if read >= MOSTLY * moved else ("write", "stream_write") if written >= MOSTLY * moved else ("copy", "stream_copy")
    memory = moved / max(limits.bandwidth[kind, place, threads] for kind in kinds) if moved else 0.0
    if not max(compute, memory):
        return None
    return Bound(compute, "compute") if compute >= memory else Bound(memory, place)


@dataclass(frozen=True)
class LimitsFile:
    """Where the limits of a machine are kept; `path` None: nowhere."""

    path: Path | None
    threads: tuple[int, ...]

    @classmethod
    def of(cls, target: CpuTargetAttr, directory: Path | None = None) -> LimitsFile:
        """The file for one and for `target.threads` threads of this machine, in the cache directory."""
        directory = directory or default_directory()
        counts = tuple(sorted({1, target.threads}))
        name = digest("limits", target.cpu, repr(counts), *sorted(map(str, versions().items())))[:32]
        return cls(directory / "limits" / name if directory is not None else None, counts)

    def limits(self) -> Limits:
        """What is kept, or measured now and kept."""
        found, _ = self._read()
        return found if found is not None else self.measured_again()

    def measured_again(self) -> Limits:
        """The better of what is kept and of a new measurement; what is kept where it was measured `ROUNDS` times."""
        kept, rounds = self._read()
        if kept is not None and rounds >= ROUNDS:
            return kept
        found = measure_limits(threads=self.threads)
        if kept is not None:
            found = best_of(kept, found)
        self._write(found, rounds + 1)
        return found

    def _read(self) -> tuple[Limits | None, int]:
        if self.path is None:
            return None, 0
        try:
            value = json.loads(self.path.read_text(encoding="utf-8"))
            return Limits.from_json(value), int(value["rounds"])
        except (OSError, ValueError, KeyError, TypeError):
            return None, 0

    def _write(self, limits: Limits, rounds: int) -> None:
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, json.dumps({**limits.to_json(), "rounds": rounds}).encode())
        except OSError:  # a directory that cannot be written: measured again next time
            return


def best_of(a: Limits, b: Limits) -> Limits:
    """The larger number of each."""
    flops = {key: max(rate, b.flops.get(key, 0.0)) for key, rate in a.flops.items()}
    return replace(a, flops=flops, bandwidth={key: max(rate, b.bandwidth.get(key, 0.0)) for key, rate in a.bandwidth.items()})


__all__ = ["Bound", "LimitsFile", "best_of", "bound_of"]
