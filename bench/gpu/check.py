"""`python -m bench.gpu.check`: everything that a GPU has to show, in one command of less than six minutes.

1. Every kernel family on random data against numpy in f64 (or the CPU target where numpy has no such function).
2. Medians by events of the device: products against cuBLAS, what is bound by memory against a copy, attention and convolutions against
   PyTorch's, the host's part of a call against CuPy and PyTorch, training steps.
3. A table, and all figures as JSON after each part, so that a run that is cut short is of use.

`--device cuda:emulated` (tiny sizes, no peers) shows that the script works where there is no GPU. A wrong result makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import gradir as gd
from bench.gpu.cases import Case, Scale, checked, timed
from bench.gpu.peers import Cupy, Torch
from bench.gpu.report import table
from bench.gpu.timing import host_seconds, of_gradir
from bench.gpu.training import STEPS
from gradir.dialects.target.cuda_facts import CARDS, Card
from gradir.errors import GradirError

SCALES = {"mlp": 8, "cnn": 8, "transformer": 16, "lstm": 16}
"""How much larger than the emulator's the training steps of a GPU are."""


@dataclass
class Check:
    """One run of the script."""

    device: Any
    target: str
    scale: Scale
    out: Path
    seconds: float
    began: float = field(default_factory=time.perf_counter)
    figures: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def left(self) -> float:
        """Seconds that remain."""
        return self.seconds - (time.perf_counter() - self.began)

    def save(self) -> None:
        """Write what is known so far."""
        self.figures["seconds"] = round(time.perf_counter() - self.began, 1)
        self.out.parent.mkdir(parents=True, exist_ok=True)
        self.out.write_text(json.dumps(self.figures, indent=1), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 when all results are right."""
    args = _parser().parse_args(arguments)
    try:
        device = gd.device(args.device)
    except GradirError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    scale: Scale = "tiny" if args.tiny or args.device == "cuda:emulated" else "full"
    target = args.device if args.device == "cuda:emulated" else f"{args.device}:{device.limits.arch}"
    check = Check(device, target, scale, Path(args.out), args.seconds)
    torch, cupy = Torch(), Cupy()
    check.figures |= {
        "card": device.limits.name,
        "arch": device.limits.arch,
        "target": target,
        "scale": scale,
        "versions": {"torch": torch.version, "cupy": cupy.version},
        "missing": [peer.missing for peer in (torch, cupy) if peer.missing],
    }
    wanted = args.only.split(",") if args.only else ["check", "speed", "overhead", "training"]
    if args.workers > 1:
        _compile_ahead(check, args.workers, wanted)
    if "check" in wanted:
        _check(check, args.families)
    if "training" in wanted:
        _training(check, torch)
    if "overhead" in wanted:
        _overhead(check, torch, cupy)
    if "speed" in wanted:
        _speed(check, torch, cupy, args.families)
    check.save()
    sys.stdout.write(table(check.figures))
    return 1 if check.figures.get("wrong") else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.check", description="Check and measure programs for CUDA on a GPU.")
    add = parser.add_argument
    add("--device", default="cuda", help="cuda, cuda:N or cuda:emulated")
    add("--out", default="gpu-check.json", help="file for all figures")
    add("--seconds", type=float, default=330.0, help="time for everything; what does not fit is left out and named")
    add("--only", default="", help="parts, of check,speed,overhead,training")
    add("--families", default="", help="only cases whose group or name holds this text")
    add("--workers", type=int, default=0, help="processes that compile ahead")
    add("--tiny", action="store_true", help="the emulator's sizes on a GPU")
    return parser


# Compiling ahead


def _compile_ahead(check: Check, workers: int, wanted: Sequence[str]) -> None:
    """Compile all cases in processes of their own, into the cache where the main process finds them."""
    began = time.perf_counter()
    lists = [*(["checked"] if "check" in wanted else []), *(["timed"] if "speed" in wanted else [])]
    jobs = [(name, check.scale, k, check.target) for name in lists for k in range(len(_cases(name, check.scale)))]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        failed = [text for text in pool.map(_compile_one, jobs) if text]
    check.figures["compiling"] = {"programs": len(jobs), "seconds": round(time.perf_counter() - began, 1), "failed": failed[:20]}
    check.save()


def _cases(name: str, scale: Scale) -> list[Case]:
    return checked(scale) if name == "checked" else timed(scale)


def _compile_one(job: tuple[str, Scale, int, str]) -> str:
    name, scale, k, target = job
    case = _cases(name, scale)[k]
    try:
        gd.jit(case.function, target=target).compile(*map(gd.Spec, case.shapes, [str(d) for d in case.dtypes]))
    except Exception as error:
        return f"{case.group} {case.name}: {type(error).__name__}: {error}"
    return ""


# Correctness


def _check(check: Check, families: str) -> None:
    wrong: list[dict[str, Any]] = []
    skipped: list[str] = []
    right = 0
    for case in checked(check.scale):
        if families not in f"{case.group} {case.name}":
            continue
        if check.left < 0.45 * check.seconds:
            skipped.append(case.name)
            continue
        try:
            found = _difference(case, check.target)
        except Exception as error:
            wrong.append({"case": f"{case.group} {case.name}", "error": f"{type(error).__name__}: {error}"[:400]})
            continue
        if found <= case.error:
            right += 1
        else:
            wrong.append({"case": f"{case.group} {case.name}", "difference": found, "allowed": case.error})
    check.figures |= {"right": right, "wrong": wrong, "unchecked": skipped}
    check.save()


def _difference(case: Case, target: str) -> float:
    """The largest difference from the reference, relative to its largest value."""
    inputs = case.inputs()
    results = _leaves(gd.jit(case.function, target=target)(*inputs))
    if case.reference is None:
        wanted = _leaves(gd.jit(case.function)(*inputs))
    else:
        wanted = _leaves(case.reference(*[x if x.dtype.kind in "iu" else x.astype(np.float64) for x in inputs]))
    worst = 0.0
    for a, b in zip(results, wanted, strict=True):
        found, value = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
        if found.shape != value.shape:
            return float("inf")
        if value.size:
            gap = np.abs(found - value)
            worst = max(worst, float("inf") if not np.isfinite(gap).all() else float(gap.max() / max(1.0, np.abs(value).max())))
    return worst


def _leaves(result: Any) -> list[Any]:
    return [leaf for part in result for leaf in _leaves(part)] if isinstance(result, list | tuple) else [result]


# Speed


def _speed(check: Check, torch: Torch, cupy: Cupy, families: str) -> None:
    card = _card(check)
    rows: list[dict[str, Any]] = []
    if not cupy.missing:
        size = 1 << (28 if check.scale == "full" else 16)
        check.figures["copy_bandwidth"] = cupy.copy_bandwidth(size)
    skipped: list[str] = []
    for case in timed(check.scale):
        if families not in f"{case.group} {case.name}":
            continue
        if check.left < 5:
            skipped.append(f"{case.group} {case.name}")
            continue
        rows.append(_measured(case, check, torch, card))
        if len(rows) % 8 == 0:
            check.figures["speed"] = rows
            check.save()
    check.figures |= {"speed": rows, "unmeasured": skipped}
    check.save()


def _measured(case: Case, check: Check, torch: Torch, card: Card) -> dict[str, Any]:
    bound = max(case.flops / card.peak(case.element), case.moved / card.bandwidth)
    row: dict[str, Any] = {"group": case.group, "name": case.name, "flops": case.flops, "bytes": case.moved, "bound": bound}
    inputs = case.inputs()
    try:
        row["seconds"] = of_gradir(gd.jit(case.function, target=check.target), gd.device_put(inputs, check.target), check.device)
    except Exception as error:
        row["error"] = f"{type(error).__name__}: {error}"[:300]
    if not torch.missing and case.peer and not check.target.endswith("emulated"):
        try:
            row["peer"] = torch.seconds(case.peer, inputs)
            if case.group in ("gemm", "convolution") and case.element == "f32":
                row["peer_tf32"] = torch.seconds(case.peer, inputs, tf32=True)
        except Exception as error:
            row["peer_error"] = f"{type(error).__name__}: {error}"[:200]
    return row


def _card(check: Check) -> Card:
    """The facts of the device's card; those of an H200 for one that the table lacks."""
    name = check.device.limits.name.lower()
    found = next((card for key, card in CARDS.items() if key in name.replace(" ", "")), CARDS["h200"])
    check.figures["bounds_of"] = found.name
    return found


def _overhead(check: Check, torch: Torch, cupy: Cupy) -> None:
    """Microseconds of the host for a call on two arrays of eight elements, and for a training step of many launches."""
    device, target = check.device, check.target
    a, b = gd.device_put([np.ones(8, np.float32)] * 2, target)
    add = gd.jit(lambda x, y: x + y, target=target)
    wait = device.current_stream().synchronize
    count = 200 if check.scale == "full" else 3
    found: dict[str, Any] = {"gradir": host_seconds(lambda: add(a, b), wait, count) * 1e6}
    for name, peer in (("torch", torch), ("cupy", cupy)):
        if not peer.missing and check.scale == "full":
            found[name] = peer.overhead() * 1e6
    check.figures["overhead_us"] = found
    check.save()


def _training(check: Check, torch: Torch) -> None:
    rows: list[dict[str, Any]] = []
    for name, make in STEPS.items():
        step, arguments = make(1)
        row: dict[str, Any] = {"name": name}
        try:
            wanted = _leaves(gd.jit(step)(*arguments))
            found = _leaves(gd.jit(step, target=check.target)(*arguments))
            row["difference"] = max(float(np.abs(np.asarray(a) - b).max(initial=0.0)) for a, b in zip(found, wanted, strict=True))
            if not row["difference"] <= 1e-4:
                check.figures.setdefault("wrong", []).append({"case": f"training {name}", "difference": row["difference"], "allowed": 1e-4})
            if check.scale == "full":
                step, arguments = make(SCALES[name])
                there = gd.device_put(list(arguments), check.target)
                before = check.device.graph_launches
                row["seconds"] = of_gradir(gd.jit(step, target=check.target), there, check.device)
                row["graphs"] = check.device.graph_launches - before
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"[:300]
            check.figures.setdefault("wrong", []).append({"case": f"training {name}", "error": row["error"]})
        rows.append(row)
    check.figures["training"] = rows
    check.save()


if __name__ == "__main__":
    sys.exit(main())
