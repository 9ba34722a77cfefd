"""The goals for speed and memory, line by line, and what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench import results as res
from bench.performance.data import Data
from bench.workloads import COMPARED, WORKLOADS

SINGLE_OPS = ("overhead", "gemm", "elementwise", "conv")
ELEMENTWISE = ("relu", "exp", "tanh", "gelu", "softmax", "layer_norm")
REDUCTIONS = ("sum", "max")


@dataclass(frozen=True)
class Line:
    """One goal. `within` is None where nothing was measured."""

    what: str
    limit: str
    measured: str
    within: bool | None

    @property
    def verdict(self) -> str:
        return {True: "within", False: "beyond", None: "not measured"}[self.within]


def lines(data: Data) -> list[Line]:
    """All of them, in the order of the page."""
    found = [*_steady(data), *_limits(data), *_first_calls(data), *_calls(data), *_memory(data)]
    return [line for line in found if line is not None]


def training(data: Data) -> list[str]:
    """Workloads with a backward pass."""
    return [name for name, w in WORKLOADS.items() if w.training and any(name in run["workloads"] for run in data.runs.values())]


def _steady(data: Data) -> Iterator[Line]:
    for threads, run in data.runs.items():
        ratios = {name: r for name in COMPARED if (r := res.ratio(run, name)) is not None}
        where = f"{threads} thread{'s' * (threads > 1)}"
        if not ratios:
            continue
        ahead, worst = sum(r < 1.02 for r in ratios.values()), max(ratios, key=lambda n: ratios[n])
        mean = res.geometric_mean(ratios.values()) or 0.0
        yield Line(f"{where}: workloads whose time is < 1.02 of the best peer's", ">= 24 of 27", f"{ahead} of {len(ratios)}", ahead >= 24)
        yield Line(f"{where}: the greatest ratio", "< 1.1", f"{ratios[worst]:.2f} ({worst})", ratios[worst] < 1.1)
        yield Line(f"{where}: geometric mean of the ratios", "<= 0.80", f"{mean:.3f}", mean <= 0.80)
        mine, theirs = (res.seconds_of(run, "newton_grad", name) for name in (res.OURS, "jax"))
        if mine and theirs:
            yield Line(f"{where}: newton_grad in reverse, to JAX's forward mode", "< 1", f"{mine / theirs:.2f}", mine < theirs)


def _limits(data: Data) -> Iterator[Line | None]:
    peak, copy, read = "the FMA peak", "a plain copy's bandwidth", "the bandwidth of reads"
    shapes = ("gemm_512x768", "gemm_512x3072", "gemm_197", "scores")
    for threads in (1, 2):
        square = {n: c for n, c in data.sweep("gemm", threads).items() if len(set(n.split("_")[1].split("x"))) == 1}
        where = f"{threads} thread{'s' * (threads > 1)}"
        yield _share(f"{where}: f32 products of 128 to 2048", square, 0.90, peak)
        yield _share(f"{where}: products of transformer shapes", _some(data, shapes, threads), 0.85, peak)
        yield _share(f"{where}: 3 x 3 convolutions", data.sweep("conv3x3", threads), 0.90, peak)
        yield _share(f"{where}: elementwise, softmax, layer norm", _some(data, ELEMENTWISE, threads), 0.85, copy)
        yield _share(f"{where}: reductions", _some(data, REDUCTIONS, threads), 0.85, read)
    one, two = (_some(data, ("gemm", "scores", "conv3x3"), t) for t in (1, 2))
    gains = {name: one[name]["seconds"] / two[name]["seconds"] for name in one if name in two}
    if gains:
        least = min(gains, key=lambda n: gains[n])
        yield Line("2 threads to 1, products and convolutions", ">= 1.85", f"{gains[least]:.2f} ({least}) and more", gains[least] >= 1.85)


def _some(data: Data, names: Iterable[str], threads: int) -> dict[str, dict[str, float]]:
    return {name: cell for pattern in names for name, cell in data.sweep(pattern, threads).items()}


def _share(what: str, cells: dict[str, dict[str, float]], floor: float, limit: str) -> Line | None:
    if not cells:
        return None
    least = min(cells, key=lambda n: cells[n]["share"])
    enough, share = sum(c["share"] >= floor for c in cells.values()), cells[least]["share"]
    measured = f"{100 * share:.0f} % ({least}) and more; {enough} of {len(cells)} reach it"
    return Line(what, f">= {100 * floor:.0f} % of {limit}", measured, share >= floor)


def _worst(pairs: dict[str, float], limit: float, text: Callable[[float], str]) -> tuple[str, bool] | None:
    if not pairs:
        return None
    worst = max(pairs, key=lambda n: pairs[n])
    return f"{text(pairs[worst])} ({worst}); {sum(v <= limit for v in pairs.values())} of {len(pairs)} reach it", pairs[worst] <= limit


def _line(what: str, limit: str, found: tuple[str, bool] | None) -> Line:
    return Line(what, limit, *found) if found else Line(what, limit, "", None)


def _first_calls(data: Data) -> Iterator[Line]:
    """Trace and compile: a first call less a warm one."""
    ratios: dict[str, float] = {}
    for name in training(data):
        mine, theirs = (_compiling(data, name, system, data.first(name, system)) for system in (res.OURS, "jax"))
        if mine and theirs:
            ratios[name] = mine / theirs
    yield _line("trace and compile, training workloads, caches empty, to JAX's", "<= 0.6", _worst(ratios, 0.6, lambda v: f"{v:.2f}"))
    ours = {n: t for n in WORKLOADS if (t := _compiling(data, n, res.OURS, data.first(n, res.OURS)))}
    singles = {n: t for n, t in ours.items() if WORKLOADS[n].group in SINGLE_OPS}
    yield _line("trace and compile, single operations", "<= 150 ms", _worst(singles, 0.15, res.seconds_text))
    found = {n: data.start(n, res.OURS).get("cached", {}).get("first") for n in WORKLOADS}
    cached = {n: t for n, first in found.items() if (t := _compiling(data, n, res.OURS, first))}
    smaller = dict(sorted(cached.items(), key=lambda item: item[1])[:-2])
    yield _line("the same with a warm disk cache, all but the two largest", "<= 60 ms", _worst(smaller, 0.06, res.seconds_text))


def _compiling(data: Data, workload: str, system: str, first: float | None) -> float | None:
    warm = data.cell(workload, system).get("wall", {}).get("median")
    return max(first - warm, 1e-4) if first and warm else None


def _calls(data: Data) -> Iterator[Line]:
    calls = data.limits.get("calls", {})
    for key, what, limit in (("out", "a call of overhead_add8 with `out=`", 0.5e-6), ("plain", "a call of overhead_add8", 1e-6)):
        found = calls.get(key)
        yield _line(what, f"<= {1e6 * limit:g} us", (f"{1e6 * found:.2f} us", found <= limit) if found else None)


def _memory(data: Data) -> Iterator[Line]:
    ratios: dict[str, float] = {}
    for name in training(data):
        mine, theirs = (planned(data.plan(name, system)) for system in (res.OURS, "jax"))
        if mine and theirs:
            ratios[name] = mine / theirs
    what = "arena + outputs of the training workloads, to JAX's temporaries + outputs"
    yield _line(what, "<= 1", _worst(ratios, 1.0, lambda v: f"{v:.2f}"))
    plans = {name: data.plan(name, res.OURS) for name in ("block_train", "resnet_train")}
    packing = {name: plan["arena"] / plan["bound"] for name, plan in plans.items() if plan.get("bound")}
    limit = "<= 1.05"
    yield _line("planned arena to the most that is live at once", limit, _worst(packing, 1.05, lambda v: f"{v:.3f}"))


def planned(plan: dict[str, int]) -> int | None:
    """Bytes of temporaries and outputs."""
    return plan["temporary"] + plan["output"] if plan else None


def table(rows: Sequence[Line]) -> list[str]:
    """Markdown."""
    out = ["| | goal | measured | |", "|---|---|---|---|"]
    return out + [f"| {line.what} | {line.limit} | {line.measured} | {line.verdict} |" for line in rows]
