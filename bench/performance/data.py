"""The measurements that the page is made of, each a file of `bench.results`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import results as res

DATA = Path(__file__).resolve().parent.parent / "data"


@dataclass(frozen=True)
class Data:
    """`runs` by number of threads; `loaded`: two threads beside busy processes; `limits`: what `bench.sweep` wrote."""

    runs: dict[int, res.Results]
    loaded: res.Results | None
    limits: dict[str, Any]

    @classmethod
    def read(cls, folder: Path = DATA) -> Data:
        files = {
            name: res.read(path) for name in ("threads1", "threads2", "loaded", "limits") if (path := folder / f"{name}.json").exists()
        }
        runs = {t: files[f"threads{t}"] for t in (1, 2) if f"threads{t}" in files}
        return cls(runs, files.get("loaded"), files.get("limits", {}))

    def cell(self, workload: str, system: str, threads: int = 1) -> dict[str, Any]:
        """A cell that ran, else an empty one."""
        cell = self._section("workloads", threads).get(workload, {}).get("cells", {}).get(system, {})
        return cell if "wall" in cell and "failed" not in cell else {}

    def first(self, workload: str, system: str, threads: int = 1) -> float | None:
        """Seconds of the first call with empty caches: trace, compile and run."""
        return self._section("firsts", threads).get(workload, {}).get(system)

    def plan(self, workload: str, system: str) -> dict[str, int]:
        """Bytes that a system plans for a call on one thread, see `bench.systems.Cell`."""
        return self._section("plans", 1).get(workload, {}).get(system, {})

    def _section(self, name: str, threads: int) -> dict[str, Any]:
        return self.runs.get(threads, {}).get(name, {})

    def start(self, workload: str, system: str, threads: int = 1) -> dict[str, Any]:
        """What a fresh process took, see `bench.first`."""
        found = self._section("starts", threads).get(workload, {}).get(system, {})
        return found if "start" in found else {}

    def sweep(self, pattern: str, threads: int) -> dict[str, dict[str, float]]:
        """Cases whose names begin with `pattern`."""
        rows = self.limits.get("sweep", {})
        return {name: row[str(threads)] for name, row in rows.items() if name.startswith(pattern) and str(threads) in row}
