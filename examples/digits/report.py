"""What the demo leaves to look at: two pictures, and a page that shows the training step at every level."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from gradir.driver.explain import Explanation
from gradir.driver.explain.page import save_page, table_html, timeline_svg
from gradir.driver.residuals import ResidualReport

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
pre { background: #f6f6f4; padding: .8rem; overflow: auto; max-height: 34rem; font-size: 12px; line-height: 1.35 }
table { border-collapse: collapse } td, th { padding: .15rem .8rem; border-bottom: 1px solid #ddd; text-align: right }
td:first-child, th:first-child { text-align: left } img { max-width: 34rem }
details { margin: .6rem 0 } summary { cursor: pointer; font-weight: 600 }
"""

MEANING = {
    "1 tensor": "What the model means: the traced step with its request for a gradient.",
    "1 tensor, simplified": "The gradient as code, simplified, composites expanded.",
    "2 structured": "Loop nests with scalar bodies, fused into kernels, equal ones shared.",
    "3 buffers": "Destinations and one arena with fixed offsets; kernels are calls.",
    "4 loops": "Tiled, vectorised loops of each distinct kernel.",
    "5 target": "LLVM IR text, from which the object code is made.",
}


def loss_curve(path: Path, curves: Mapping[str, Sequence[float]]) -> None:
    """Loss per step, smoothed over an epoch, on a logarithmic axis."""
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for name, losses in curves.items():
        values = np.convolve(losses, np.full(22, 1 / 22), "valid")
        axes.semilogy(np.arange(len(values)), values, label=name)
    axes.set(xlabel="step", ylabel="cross entropy (mean of 22 steps)")
    axes.legend()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def confusion(path: Path, tables: Mapping[str, np.ndarray]) -> None:
    """One 10x10 table per model: rows are the digits, columns what was predicted."""
    figure, panels = plt.subplots(1, len(tables), figsize=(4.2 * len(tables), 4), layout="constrained")
    for axes, (name, table) in zip(np.atleast_1d(panels), tables.items()):
        axes.imshow(np.sqrt(table), cmap="Blues")
        for (row, column), count in np.ndenumerate(table):
            if count:
                axes.text(column, row, int(count), ha="center", va="center", color="white" if row == column else "crimson", fontsize=8)
        axes.set(title=name, xlabel="predicted", ylabel="digit", xticks=range(10), yticks=range(10))
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _residuals(kept: ResidualReport) -> list[str]:
    """A table of what the backward part reads of the forward part, and the bytes of all."""
    out: list[str] = []
    for function in kept.functions:
        summary = f"Residuals ({function.total(again=False)} bytes): what the backward part reads of the forward part, and why it is kept."
        out.append(f"<details><summary>{html.escape(summary)}</summary><table><tr><th>value<th>bytes<th>type<th>op<th>where<th>why")
        for r in function.residuals:
            cells = (r.name, r.bytes, r.type, r.op, r.location, r.why)
            out.append("<tr>" + "".join(f"<td>{html.escape(str(cell))}" for cell in cells))
        out.append("</table></details>")
    return out


def readable(value: object) -> str:
    """A result as people read it: four digits of a fraction."""
    return f"{value:.4g}" if isinstance(value, float) and abs(value) < 1000 else str(value)


def page(
    path: Path,
    results: Mapping[str, object],
    stages: Mapping[str, float],
    levels: Mapping[str, Mapping[str, str]],
    residuals: Mapping[str, ResidualReport],
    pictures: Sequence[Path],
    explained: Mapping[str, Explanation],
) -> None:
    """The page: figures, time per stage, and each model's step at each level, with what its gradient keeps and its kernels cost."""
    out = [f"<!doctype html><meta charset=utf-8><title>Digits, level by level</title><style>{STYLE}</style><h1>Digits, level by level</h1>"]
    out += ["<table>", *(f"<tr><td>{html.escape(k)}<td>{html.escape(readable(v))}" for k, v in results.items()), "</table>"]
    out += [f'<p><img src="{p.name}" alt="{p.stem}">' for p in pictures]
    out += ["<h2>Compiling the MLP step, empty caches</h2><table><tr><th>stage<th>ms"]
    out += [f"<tr><td>{html.escape(k)}<td>{v * 1e3:.1f}" for k, v in stages.items()]
    out += ["</table>"]
    for model, texts in levels.items():
        out.append(f"<h2>{html.escape(model)} step</h2>")
        for level, text in texts.items():
            lines = text.count("\n") + 1
            summary = f"{level} ({lines} lines). {MEANING.get(level, '')}"
            out.append(f"<details><summary>{html.escape(summary)}</summary><pre>{html.escape(text)}</pre></details>")
        out += _residuals(residuals[model])
        folder = path.parent / f"explain-{model}"
        save_page(explained[model], folder)
        link = f'<a href="{folder.name}/index.html">roofline and trace</a>'
        out += [f"<h3>Where the time goes: {link}</h3>", table_html(explained[model]), timeline_svg(explained[model])]
    path.write_text("\n".join(out), encoding="utf-8")
