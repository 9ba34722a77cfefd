"""Train an MLP and a CNN on handwritten digits, each step one compiled function; measure, save, reload, classify again.

python examples/digits/train.py [--epochs N] [--out DIR]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import data
import models
import numpy as np
import report
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import gradir as gd
from gradir.driver.explain import Explanation
from gradir.driver.residuals import ResidualReport

BATCH = 64
CONSOLE = Console()


@dataclass
class Trained:
    """A trained model and what its training showed."""

    params: models.Params
    losses: list[float]
    steps_per_second: float
    step: gd.Compiled


def train(
    name: str, model: Callable[..., Any], params: models.Params, digits: data.Digits, epochs: int, rate: float, shift: bool
) -> Trained:
    """Mini-batch Adam over shuffled epochs; `shift` moves the training images by up to a pixel each time."""
    rng = np.random.default_rng(1)
    per_epoch = len(digits.train_x) // BATCH
    state = models.adam_state(params)
    step = gd.compile(
        models.training_step(model, rate, epochs * per_epoch), state, digits.train_x[:BATCH], digits.train_y[:BATCH], threads=1
    )
    losses: list[float] = []
    busy = 0.0
    columns = (
        TextColumn(f"{name:4}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.4f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=CONSOLE) as progress:
        task = progress.add_task(name, total=epochs * per_epoch, loss=float("nan"))
        for _ in range(epochs):
            order = rng.permutation(len(digits.train_x))
            images = data.shifted(digits.train_x, rng) if shift else digits.train_x
            for k in range(per_epoch):
                rows = order[k * BATCH : (k + 1) * BATCH]
                x, y = images[rows], digits.train_y[rows]
                began = time.perf_counter()
                state, loss = step(state, x, y)
                busy += time.perf_counter() - began
                losses.append(float(loss))
            progress.update(task, advance=per_epoch, loss=losses[-1])
    if not np.isfinite(losses).all():
        raise SystemExit(f"{name}: the loss is not finite after step {int(np.argmin(np.isfinite(losses)))}")
    return Trained(state["params"], losses, len(losses) / busy, step)


def compile_times(digits: data.Digits) -> tuple[float, float, dict[str, float]]:
    """Seconds from function to callable with empty caches, and again with warm ones; stages of the cold run."""
    gd.preload()
    state = models.adam_state(models.mlp_params(0))
    args = (state, digits.train_x[:BATCH], digits.train_y[:BATCH])
    seconds = []
    stages: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            step = gd.jit(models.training_step(models.mlp, 0.003, 1000), threads=1, cache=folder)
            began = time.perf_counter()
            step(*args)
            seconds.append(time.perf_counter() - began)
            stages = stages or dict(step.programs[0].report.stages)
    return seconds[0], seconds[1], stages


def accuracy(logits: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean(np.argmax(logits, -1) == labels))


def confusion(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    table = np.zeros((10, 10), np.int64)
    np.add.at(table, (labels, np.argmax(logits, -1)), 1)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("build"))
    options = parser.parse_args()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    digits = data.load()

    cold, warm, stages = compile_times(digits)
    trained = {
        "mlp": train("MLP", models.mlp, models.mlp_params(5), digits, options.epochs, 0.004, shift=False),
        "cnn": train("CNN", models.cnn, models.cnn_params(3), digits, options.epochs, 0.003, shift=True),
    }
    nets = {"mlp": models.mlp, "cnn": models.cnn}
    spec = gd.Spec(digits.test_x.shape, np.float32)
    bundle = gd.bundle({name: (lambda x, n=name: nets[n](trained[n].params, x), (spec,)) for name in nets})
    artefact = out / "digits.gradir"
    bundle.save(artefact)
    logits = {name: bundle[name](digits.test_x) for name in nets}
    scores = {name: accuracy(logits[name], digits.test_y) for name in nets}

    again = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("classify.py")), str(artefact)], capture_output=True, text=True, check=False
    )
    if again.returncode:
        raise SystemExit(f"the reloaded artefact failed:\n{again.stderr}")
    reloaded = json.loads(again.stdout)

    results: dict[str, Any] = {
        "mlp_accuracy": scores["mlp"],
        "cnn_accuracy": scores["cnn"],
        "mlp_reloaded_accuracy": reloaded["mlp"],
        "cnn_reloaded_accuracy": reloaded["cnn"],
        "compile_cold_s": round(cold, 4),
        "compile_warm_s": round(warm, 4),
        "steps_per_s": round(trained["mlp"].steps_per_second, 1),
        "cnn_steps_per_s": round(trained["cnn"].steps_per_second, 1),
        "arena_bytes": max(trained["mlp"].step.report.arena_bytes.values()),
        "cnn_arena_bytes": max(trained["cnn"].step.report.arena_bytes.values()),
        "artefact": str(artefact.resolve()),
        "report": str((out / "report.html").resolve()),
    }
    write_report(out, digits, trained, logits, stages, results)
    (out / "demo.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    show(results, stages)


def write_report(
    out: Path, digits: data.Digits, trained: dict[str, Trained], logits: dict[str, Any], stages: dict[str, float], results: dict[str, Any]
) -> None:
    """Pictures and the page with each step at each level, and what its kernels cost."""
    curve, table = out / "loss.png", out / "confusion.png"
    report.loss_curve(curve, {name: t.losses for name, t in trained.items()})
    report.confusion(table, {name: confusion(logits[name], digits.test_y) for name in trained})
    levels: dict[str, dict[str, str]] = {}
    residuals: dict[str, ResidualReport] = {}
    explained: dict[str, Explanation] = {}
    for name, model in (("mlp", models.mlp), ("cnn", models.cnn)):
        state = models.adam_state(trained[name].params)
        step = models.training_step(model, 0.003, 1000)
        arguments = (state, digits.train_x[:BATCH], digits.train_y[:BATCH])
        compiled = gd.compile(step, *arguments, threads=1, keep_ir=True)
        levels[name], residuals[name] = compiled.report.ir, compiled.report.residuals
        explained[name] = compiled.explain(*arguments)
    report.page(out / "report.html", results, stages, levels, residuals, [curve, table], explained)


def show(results: dict[str, Any], stages: dict[str, float]) -> None:
    """The figures, for people."""
    timing = Table("stage", "ms", title="Compiling the MLP step, empty caches")
    for name, seconds in stages.items():
        timing.add_row(name, f"{seconds * 1e3:.1f}")
    figures = Table("figure", "value", title="Digits")
    for name, value in results.items():
        figures.add_row(name, report.readable(value))
    CONSOLE.print(timing, figures)


if __name__ == "__main__":
    main()
