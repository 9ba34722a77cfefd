"""The plots of the page, as SVG that only changes when the numbers do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

from bench import results as res
from bench.performance.data import Data
from bench.workloads import WORKLOADS

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "gradir"
matplotlib.rcParams["svg.fonttype"] = "none"
import matplotlib.pyplot as plt  # noqa: E402  (after the backend is chosen)

AHEAD, BEHIND = "#2a7f62", "#c8553d"


def plots(data: Data, folder: Path) -> list[Path]:
    """Write them; the paths of those that there is data for."""
    return [path for path in (_ratios(data, folder), _limits(data, folder)) if path is not None]


def _save(figure: Any, path: Path) -> Path:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path


def _ratios(data: Data, folder: Path) -> Path | None:
    """Per workload, our time over that of the best peer; logarithmic."""
    if not data.runs:
        return None
    figure, axes = plt.subplots(1, len(data.runs), figsize=(6.5 * len(data.runs), 8.5), layout="constrained", squeeze=False)
    for panel, (threads, run) in zip(axes[0], data.runs.items()):
        found = [(name, r) for name in reversed(WORKLOADS) if (r := res.ratio(run, name)) is not None]
        panel.barh([n for n, _ in found], [r for _, r in found], color=[AHEAD if r < 1.02 else BEHIND for _, r in found])
        panel.set(xscale="log", title=f"{threads} thread{'s' * (threads > 1)}: time to that of the best peer (left of 1: ahead)")
        panel.axvline(1.0, color="black", linewidth=0.8)
        panel.tick_params(axis="y", labelsize=8)
    return _save(figure, folder / "performance-ratios.svg")


def _limits(data: Data, folder: Path) -> Path | None:
    """Share of the limit, per case, on one thread and two."""
    sweep = data.limits.get("sweep", {})
    if not sweep:
        return None
    names = list(reversed(sweep))
    figure, panel = plt.subplots(figsize=(9, 8.5), layout="constrained")
    for k, t in enumerate(("2", "1")):
        shares = [100 * sweep[n][t]["share"] if t in sweep[n] else 0.0 for n in names]
        panel.barh([i + 0.4 * k - 0.2 for i in range(len(names))], shares, height=0.38, label=f"{t} thread{'s' * (t != '1')}")
    for i, name in enumerate(names):
        floor = 100 * next(iter(sweep[name].values()))["floor"]
        panel.plot([floor, floor], [i - 0.45, i + 0.45], color="black", linewidth=1)
    panel.set_yticks(range(len(names)), names, fontsize=8)
    panel.set(title="percent of the measured limit (marks: goals)", xlim=(0, None))
    panel.legend(loc="lower right")
    return _save(figure, folder / "performance-limits.svg")
