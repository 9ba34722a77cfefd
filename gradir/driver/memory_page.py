"""Plans of memory for people: a table with bars, and a page with the arena as a picture over time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradir.driver.memory import Buffer, FunctionMemory

BARS = 48
"""Columns of the timeline in a table."""

WIDTH, HEIGHT = 1100, 420
"""Pixels of the picture of an arena."""

COLOURS = ("#4878a8", "#d1853f", "#5b9b58", "#b3554f", "#8a6fb0", "#8f7355", "#c77fb0", "#7c7c7c", "#a8a53d", "#4fa6b0")

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; color: #222 } svg { max-width: 100%; height: auto; background: #f6f6f4 }
table { border-collapse: collapse; font-size: 13px } td, th { padding: .15rem .6rem; border-bottom: 1px solid #ddd; text-align: left }
"""

COLUMNS = ("bytes", "in", "offset", "type", "made by", "at")


def table_text(plan: FunctionMemory) -> str:
    """One buffer a line, the largest first, with the steps in which it lives; then what is not in the arena."""
    head = (*COLUMNS, f"steps 0 to {plan.steps - 1}")
    rows = [head, *((*_cells(b), _bar(b, plan.steps)) for b in _largest_first(plan))]
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    lines = [_summary(plan)]
    for row in rows:
        cells = [cell.rjust(width) if k in (0, 2) else cell.ljust(width) for k, (cell, width) in enumerate(zip(row, widths, strict=True))]
        lines.append("  " + "  ".join(cells).rstrip())
    if plan.scratch:
        step = max(plan.work, key=lambda step: step.scratch)
        lines.append(f"  kernels allocate at most {plan.scratch} bytes beside it: @{step.kernel} at {step.location}")
    if plan.run_time:
        lines.append(f"  and {plan.run_time} buffers whose sizes only the run knows")
    lines += [f"  donated {note}" for note in plan.donated]
    return "\n".join(lines) + "\n"


def page_text(plans: Sequence[FunctionMemory]) -> str:
    """An HTML page with all plans."""
    parts = [f"<!doctype html><meta charset=utf-8><title>memory</title><style>{STYLE}</style>"]
    for plan in plans:
        parts.append(f"<h1>@{escape(plan.function)}</h1><p>{escape(_summary(plan))}; {plan.results} bytes of results.")
        if plan.scratch:
            parts.append(f"Kernels allocate at most {plan.scratch} bytes beside it.")
        parts += [f"<p>Donated {escape(note)}." for note in plan.donated]
        parts += [_picture(plan), _html_table(plan)]
    return "\n".join(parts)


def _summary(plan: FunctionMemory) -> str:
    return f"memory of @{plan.function}: arena {plan.arena} bytes, at most {plan.peak} live at once, {plan.unshared} without sharing"


def _largest_first(plan: FunctionMemory) -> list[Buffer]:
    return sorted(plan.buffers, key=lambda b: (-b.bytes, b.begin, b.offset))


def _cells(buffer: Buffer) -> tuple[str, ...]:
    return (str(buffer.bytes), buffer.place, str(buffer.offset), buffer.type, f"@{buffer.made_by}", buffer.location)


def _bar(buffer: Buffer, steps: int) -> str:
    """The life of a buffer on a line of `BARS` columns."""
    columns = min(BARS, steps)
    first, last = buffer.begin * columns // steps, buffer.end * columns // steps
    return "." * first + "#" * (last - first + 1) + "." * (columns - 1 - last)


def _picture(plan: FunctionMemory) -> str:
    """Each buffer of the arena as a box: steps from left to right, offsets from below; the line is what is live at each step."""
    if not plan.arena:
        return "<p>No arena."
    across, up = WIDTH / plan.steps, HEIGHT / plan.arena
    boxes: list[str] = []
    for k, b in enumerate(b for b in plan.buffers if b.place == "arena"):
        title = escape(f"{b.bytes} bytes {b.type} made by @{b.made_by} at {b.location}, steps {b.begin} to {b.end}")
        boxes.append(
            f'<rect x="{b.begin * across:.1f}" y="{HEIGHT - (b.offset + b.bytes) * up:.1f}" width="{(b.end + 1 - b.begin) * across:.1f}"'
            f' height="{b.bytes * up:.2f}" fill="{COLOURS[k % len(COLOURS)]}" stroke="#fff" stroke-width=".5"><title>{title}</title></rect>'
        )
    points = " ".join(f"{(s + side) * across:.1f},{HEIGHT - live * up:.1f}" for s, live in enumerate(plan.timeline) for side in (0, 1))
    line = f'<polyline points="{points}" fill="none" stroke="#111" stroke-width="1.5"/>'
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">{"".join(boxes)}{line}</svg>'


def _html_table(plan: FunctionMemory) -> str:
    head = "".join(f"<th>{name}" for name in (*COLUMNS, "steps"))
    rows = "".join("<tr>" + "".join(f"<td>{escape(c)}" for c in (*_cells(b), f"{b.begin} to {b.end}")) for b in _largest_first(plan))
    return f"<table><tr>{head}{rows}</table>"


__all__ = ["page_text", "table_text"]
