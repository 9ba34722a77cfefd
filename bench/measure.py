"""All systems on one workload, in turns: short bursts of calls, round after round, so that a noisy neighbour hits all alike.

Every cell is checked against an f64 reference after its first call. Nothing is written here: `bench.results` is what comes out.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.exports import READERS, export
from bench.peer import Peer
from bench.references import error, reference
from bench.results import summary
from bench.workloads import WORKLOADS, Workload

ROUNDS = 6
BURST = 0.1


def machine() -> dict[str, Any]:
    """What the table says about where it was measured."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        name = next((line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")), name)
    return {"cpu": name, "cores": os.cpu_count() or 1, "system": platform.system(), "python": platform.python_version()}


class Field:
    """The systems that take part; one that dies is started again for the next workload."""

    def __init__(self, names: Sequence[str], threads: int, *, caches: bool) -> None:
        self.threads, self.caches = threads, caches
        self.peers = {name: Peer.start(name, threads, caches=caches) for name in names}
        self.absent = {name: peer.hello for name, peer in self.peers.items() if not peer.ready}
        self.peers = {name: peer for name, peer in self.peers.items() if peer.ready}

    def versions(self) -> dict[str, str]:
        return {name: peer.hello["version"] for name, peer in self.peers.items()}

    def prepare(self, names: Iterable[str]) -> None:
        """Write the files that systems without a frontend read."""
        wanted = list(names)
        for system in set(READERS) & set(self.peers):
            export(system, wanted)

    def measure(self, name: str, *, rounds: int = ROUNDS, burst: float = BURST, memory: bool = False) -> dict[str, Any]:
        """One row, in the sections of `bench.results`."""
        w = WORKLOADS[name]
        cells: dict[str, dict[str, Any]] = {key: {"missing": "not installed"} for key in self.absent}
        samples: dict[str, tuple[list[float], list[float]]] = {}
        plans: dict[str, dict[str, Any]] = {}
        load = os.getloadavg()[0]
        for system in self.peers:
            cells[system] = self._loaded(system, w)
            if "first" in cells[system]:
                samples[system] = ([], [])
        for k in range(rounds):
            for system in list(samples) if k % 2 == 0 else reversed(list(samples)):
                if cells[system]["once"] > 2 and k:
                    continue  # one sample stands
                got = self.peers[system].ask("burst", seconds=burst)
                if "wall" not in got:
                    cells[system]["failed"] = got.get("failed", "no answer")
                    continue
                samples[system][0].extend(got["wall"])
                samples[system][1].extend(got["cpu"])
        for system, (wall, cpu) in samples.items():
            cells[system] |= {"wall": summary(wall), "cpu": summary(cpu)}
            if memory and w.training and (got := self.peers[system].ask("memory")).get("output"):
                plans[system] = got
            self.peers[system].ask("drop")
        firsts = {system: cell.pop("first") for system, cell in cells.items() if "first" in cell}
        row = {"when": time.strftime("%Y-%m-%d %H:%M"), "load": round(load, 2), "cells": cells}
        return {"workloads": {name: row}, "plans": {name: plans}, "firsts": {} if self.caches else {name: firsts}}

    def _loaded(self, system: str, w: Workload) -> dict[str, Any]:
        peer = self.peers[system]
        if not peer.alive:
            peer = self.peers[system] = Peer.start(system, self.threads, caches=self.caches)
        got = peer.ask("load", workload=w.name)
        if "outputs" not in got:
            return got
        with np.load(got.pop("outputs")) as file:
            outputs = [file[k] for k in file.files]
        got["error"] = error(w, outputs, reference(w))
        if not got["error"] <= w.tolerance:
            peer.ask("drop")
            return {"failed": f"wrong result: error {got['error']:.1e}, allowed {w.tolerance:.0e}"}
        return got

    def end(self) -> None:
        for peer in self.peers.values():
            peer.end()
