"""`python -m bench [--threads N] [--systems a,b] [--workloads gemm*,mlp*] [--json FILE] [--out FILE.md]`: the table, as ratios in one run.

Every system runs in its own process; for each workload they take turns in short bursts (`bench.measure`). A cell is the median of a call
(CPU time on one thread, wall time on several); in brackets, relative to gradir (above 1: gradir is faster). First calls count only without
`--caches`, which lets systems use what earlier runs left on disk. `--json` merges what was measured into a file (`bench.results`).
`--burners N` keeps N processes busy meanwhile: how the systems fare on a loaded machine (wall time then). `--starts` measures fresh
processes instead (`bench.first`): from their start to the first result.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import first, results as res
from bench.measure import BURST, ROUNDS, Field, machine
from bench.systems import SYSTEMS
from bench.workloads import COMPARED, WORKLOADS

DATA = Path(__file__).resolve().parent.parent / "build" / "bench" / "results"


def selected(patterns: str) -> list[str]:
    """Workloads by shell patterns, separated by commas; `27` stands for those of the comparison."""
    wanted = [p for pattern in patterns.split(",") for p in (COMPARED if pattern == "27" else (pattern,))]
    return [name for name in WORKLOADS if any(fnmatch.fnmatch(name, p) for p in wanted)]


@contextlib.contextmanager
def burners(count: int) -> Iterator[None]:
    """`count` processes that do nothing, as fast as they can."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def cell_text(results: res.Results, workload: str, system: str) -> str:
    mine, theirs = (res.seconds_of(results, workload, name) for name in (res.OURS, system))
    if theirs is None:
        cell = results["workloads"][workload]["cells"].get(system, {})
        return f"({(cell.get('failed') or cell.get('missing') or 'not run')[:60]})"
    return res.seconds_text(theirs) + (f" [{theirs / mine:.2f}]" if mine and system != res.OURS else "")


def work_text(results: res.Results, workload: str) -> str:
    """What gradir does per second."""
    w, t = WORKLOADS[workload], res.seconds_of(results, workload, res.OURS)
    if not t or not (w.flops or w.bytes):
        return ""
    return f"{w.flops / t / 1e9:.1f} GF/s" if w.flops else f"{w.bytes / t / 1e9:.1f} GB/s"


def ratio_text(results: res.Results, workload: str) -> str:
    """`0.93 of ort`."""
    found, best = res.ratio(results, workload), res.best_peer(results, workload)
    return f"{found:.2f} of {best[0]}" if found and best else ""


def title(results: res.Results) -> str:
    kind = "CPU time, pinned to one processor" if results["threads"] == 1 else "wall time"
    return f"median of a call ({kind}), {results['threads']} thread(s); in brackets relative to gradir"


def markdown(results: res.Results) -> str:
    """The table and the first calls as a page."""
    names = [n for n in SYSTEMS if n in results["systems"]]
    rows = [name for name in WORKLOADS if name in results["workloads"]]
    head = [f"{n} {results['systems'][n]}" for n in names]
    out = [
        "# Benchmark",
        "",
        f"{title(results).capitalize()}.",
        "",
        f"| workload | {' | '.join(head)} | gradir does | gradir to the best peer |",
    ]
    out.append("|" + "---|" * (len(names) + 3))
    for name in rows:
        cells = " | ".join(cell_text(results, name, n) for n in names)
        out.append(f"| {name} | {cells} | {work_text(results, name)} | {ratio_text(results, name)} |")
    out += ["", "First call (trace, compile, run), caches off:", "", f"| workload | {' | '.join(names)} |", "|" + "---|" * (len(names) + 1)]
    firsts = results.get("firsts", {})
    out += [f"| {name} | {' | '.join(res.seconds_text(firsts[name].get(n)) for n in names)} |" for name in rows if name in firsts]
    return "\n".join(out) + "\n"


def keep(path: Path | None, found: res.Results) -> None:
    """Merge into the file, after every row: what is measured stays, whatever happens next."""
    if path:
        old = res.read(path) if path.exists() else res.empty(found["threads"], machine())
        res.write(path, res.merged(old, found))


def starts(found: res.Results, names: Sequence[str], workloads: Sequence[str], path: Path | None, console: Console) -> None:
    """Fill in the section `starts`."""
    for name in workloads:
        found.setdefault("starts", {})[name] = {system: first.measure(system, name, found["threads"]) for system in names}
        texts = [f"{n}: {res.seconds_text(c.get('start'))}" for n, c in found["starts"][name].items() if "start" in c]
        cached = found["starts"][name].get(res.OURS, {}).get("cached", {})
        warm = [f"gradir, cached: {res.seconds_text(cached['first'])} of {res.seconds_text(cached['start'])}"] if "first" in cached else []
        console.print(f"{name:22}", *texts, *warm, sep="  ", highlight=False)
        keep(path, found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--workloads", default="*")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--burst", type=float, default=BURST, help="seconds")
    parser.add_argument("--caches", action="store_true")
    parser.add_argument("--memory", action="store_true", help="planned bytes of training steps too (JAX compiles them again for that)")
    parser.add_argument("--burners", type=int, default=0)
    parser.add_argument("--starts", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    console = Console(width=220)
    field = Field(options.systems.split(","), options.threads, caches=options.caches)
    found = res.empty(options.threads, machine())
    found["systems"] = field.versions()
    names = list(found["systems"])
    wanted = selected(options.workloads)
    field.prepare(wanted)
    if options.starts:
        field.end()
        starts(found, names, wanted, options.json, console)
        return
    found["burners"] = options.burners
    with burners(options.burners):
        for name in wanted:
            row = field.measure(name, rounds=options.rounds, burst=options.burst, memory=options.memory)
            found = res.merged(found, {**found, **row})
            cells = (f"{n}: {cell_text(found, name, n)}" for n in names)
            console.print(f"{name:22}", *cells, work_text(found, name), ratio_text(found, name), sep="  ", highlight=False)
            keep(options.json, found)
    field.end()
    table = Table("workload", *(f"{n} {found['systems'][n]}" for n in names), "gradir does", "to the best peer", title=title(found))
    for name in wanted:
        table.add_row(name, *(cell_text(found, name, n) for n in names), work_text(found, name), ratio_text(found, name))
    console.print(table)
    ratios = [r for name in COMPARED if (r := res.ratio(found, name)) is not None]
    if ratios:
        console.print(
            f"geometric mean of the ratios to the best peer over {len(ratios)} of the 27 workloads: {res.geometric_mean(ratios):.3f}"
        )
    if options.out:
        whole = res.read(options.json) if options.json else found
        options.out.write_text(markdown(whole), encoding="utf-8")


if __name__ == "__main__":
    main()
