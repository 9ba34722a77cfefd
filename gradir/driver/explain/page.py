"""The page of an explanation: the table, a roofline plot, the timeline (a trace for Perfetto beside it), all in one folder."""

from __future__ import annotations

import html
import importlib
import io
import math
from pathlib import Path
from typing import Any

from gradir.driver.explain.explanation import COLUMNS, Explanation, KernelRow, duration_text
from gradir.driver.explain.trace import trace_json
from gradir.errors import GradirError

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; color: #222 }
table { border-collapse: collapse; font-size: 13px }
td, th { padding: .15rem .6rem; border-bottom: 1px solid #ddd; text-align: right; vertical-align: top }
td:first-child, th:first-child, td:nth-child(2), td:nth-child(3), td:last-child { text-align: left } svg { max-width: 100%; height: auto }
"""

LANE, WIDTH = 22, 1100
"""Height of a thread's row of the timeline, and its width, in pixels."""

MOST_BARS = 4000
"""Bars that the timeline shows; the trace has all."""

MOST_POINTS = 12
"""Kernels in the roofline, those that take the most time."""

COLOURS = ("#4878a8", "#d1853f", "#5b9b58", "#b3554f", "#8a6fb0", "#8f7355", "#c77fb0", "#7c7c7c", "#a8a53d", "#4fa6b0")


def save_page(explanation: Explanation, folder: str | Path) -> Path:
    """Write `index.html`, `explain.json`, `trace.json` and (with matplotlib) `roofline.svg` and `roofline.png`; the path of the page."""
    directory = Path(folder)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "explain.json").write_text(explanation.to_json(), encoding="utf-8")
    (directory / "trace.json").write_text(trace_json(explanation), encoding="utf-8")
    picture = ""
    if can_plot() and explanation.limits is not None:
        for kind in ("svg", "png"):
            (directory / f"roofline.{kind}").write_bytes(roofline(explanation, kind))
        picture = '<h2>Roofline</h2><p><img src="roofline.svg" alt="roofline" style="max-width: 60rem">'
    page = directory / "index.html"
    page.write_text(page_text(explanation, picture), encoding="utf-8")
    return page


def page_text(explanation: Explanation, picture: str = "") -> str:
    """The HTML: `picture` goes between the table and the timeline."""
    title = html.escape(explanation.title())
    out = [f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{STYLE}</style><h1>{title}</h1>"]
    out += [table_html(explanation), picture]
    if explanation.events:
        out.append('<h2>One run</h2><p>Open <a href="trace.json">trace.json</a> in <a href="https://ui.perfetto.dev">Perfetto</a> to zoom.')
        out.append(timeline_svg(explanation))
    return "\n".join(out)


def table_html(explanation: Explanation) -> str:
    """The table of kernels."""
    head = "".join(f"<th>{html.escape(name)}" for name in COLUMNS)
    rows = ["<tr>" + "".join(f"<td>{html.escape(cell)}" for cell in row) for row in explanation.cells()]
    return "\n".join([f"<table><tr>{head}", *rows, "</table>"])


def timeline_svg(explanation: Explanation) -> str:
    """Threads as rows, kernels as bars with a tip; the longest bars first if there are too many."""
    events = sorted(explanation.events, key=lambda event: -event.duration)[:MOST_BARS]
    names = list(dict.fromkeys(row.name for row in explanation.rows))
    threads = max((event.thread for event in events), default=0) + 1
    end = max((event.begin + event.duration for event in events), default=0.0) or 1.0
    rows = 2 * threads  # calls above, chunks of parallel loops below them
    out = [f'<svg viewBox="0 0 {WIDTH} {rows * LANE + 4}" width="{WIDTH}" font-family="sans-serif" font-size="11">']
    for event in sorted(events, key=lambda event: event.begin):
        x, width = event.begin / end * WIDTH, max(0.3, event.duration / end * WIDTH)
        y = (2 * event.thread + event.chunk) * LANE + 2
        colour = COLOURS[names.index(event.name) % len(COLOURS)] if event.name in names else COLOURS[7]
        tip = f"{event.name}{' (chunk)' if event.chunk else ''}, {duration_text(event.duration * 1e-6)}, {event.location}"
        out.append(
            f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{LANE - 4}" fill="{colour}" opacity="{0.6 if event.chunk else 1}">'
            f"<title>{html.escape(tip)}</title></rect>"
        )
        if width > 8 * len(event.name) and not event.chunk:
            out.append(f'<text x="{x + 4:.2f}" y="{y + LANE - 9}" fill="white">{html.escape(event.name)}</text>')
    return "\n".join([*out, "</svg>"])


def can_plot() -> bool:
    """Whether matplotlib is here (`gradir[demo]`)."""
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        return False
    return True


def roofline(explanation: Explanation, kind: str = "svg") -> bytes:
    """The roofline plot as a picture (`svg` or `png`): roofs by place in memory, one point per kernel, its area its share of the time.

    GradirError RT061 without matplotlib or without limits.
    """
    if not can_plot() or explanation.limits is None:
        raise GradirError(
            "the roofline cannot be plotted",
            part="runtime",
            code="RT061",
            expected="matplotlib, and an explanation that was measured",
            found="no matplotlib" if not can_plot() else "no limits: nothing was run",
            hint="pip install gradir[demo]; explain with arguments",
        )
    figures: Any = importlib.import_module("matplotlib.figure")
    limits = explanation.limits
    threads = max((t for _, t in limits.flops if t <= explanation.threads), default=1)
    figure = figures.Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    points = [row for row in explanation.rows if row.intensity and row.flops and row.seconds]
    lowest = min([0.05, *(row.intensity / 2 for row in points if row.intensity)])
    highest = max([200.0, *(row.intensity * 2 for row in points if row.intensity)])
    peak = limits.flops["f32", threads]
    for place in limits.sizes:
        bandwidth = limits.bandwidth["copy", place, threads]
        axes.plot([lowest, peak / bandwidth, highest], [lowest * bandwidth / 1e9, peak / 1e9, peak / 1e9], color="#888", linewidth=1)
        along = {"rotation": math.degrees(math.atan(bandwidth / 1e9)), "rotation_mode": "anchor", "transform_rotates_text": True}
        axes.text(lowest * 1.1, lowest * 1.15 * bandwidth / 1e9, f"{place} {bandwidth / 1e9:.0f} GB/s", fontsize=8, color="#666", **along)
    axes.annotate(f"FMA f32 {peak / 1e9:.0f} GF/s", (highest, peak / 1e9), fontsize=8, color="#666", ha="right", va="bottom")
    for k, row in enumerate(points[:MOST_POINTS]):
        _point(axes, row, COLOURS[k % len(COLOURS)])
    axes.set(xscale="log", yscale="log", xlabel="operations per byte", ylabel="GF/s", title=_plot_title(explanation))
    axes.title.set_fontsize(9)
    if points:
        axes.legend(fontsize=7, loc="lower right")
    stream = io.BytesIO()
    figure.savefig(stream, format=kind, dpi=130)
    return stream.getvalue()


def _plot_title(explanation: Explanation) -> str:
    count = explanation.threads
    return f"@{explanation.function}, {count} thread{'s' * (count != 1)}, {duration_text(explanation.seconds or 0.0)} a run"


def _point(axes: Any, row: KernelRow, colour: str) -> None:
    assert row.flops is not None and row.seconds is not None
    size = 20 + 400 * (row.share or 0.0)
    axes.scatter(
        [row.intensity], [row.flops / row.seconds / 1e9], s=size, color=colour, label=f"{row.name} {row.share or 0:.0%}", alpha=0.8
    )


__all__ = ["can_plot", "page_text", "roofline", "save_page", "table_html", "timeline_svg"]
