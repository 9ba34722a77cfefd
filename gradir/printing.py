"""Where `nd.print` writes, and how it shows arrays: the evaluator, eager code and compiled programs use these alike.

The format is Python's: `{}` stands for an operand, `{:.3f}` shows each number that way, `{{` is a brace.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from string import Formatter
from typing import Any

import numpy as np

Sink = Callable[[str], None]


def _to_stdout(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class _State(threading.local):
    silent: int = 0


_LOCAL = _State()
_SINK: list[Sink] = [_to_stdout]


def set_print_sink(sink: Sink | None) -> Sink:
    """Let every line that programs print go to `sink`, of all threads; None: to stdout. Returns the sink before."""
    before = _SINK[0]
    _SINK[0] = _to_stdout if sink is None else sink
    return before


@contextmanager
def silent() -> Generator[None]:
    """Print nothing in this thread: for evaluations that only compare."""
    _LOCAL.silent += 1
    try:
        yield
    finally:
        _LOCAL.silent -= 1


def emit(template: str, values: Sequence[Any]) -> None:
    """Write one line."""
    if not _LOCAL.silent:
        _SINK[0](formatted(template, values))


def placeholders(template: str) -> int:
    """How many operands the format shows. Raises `ValueError` for a format that is none, or that numbers or names its operands."""
    count = 0
    for _, name, spec, conversion in Formatter().parse(template):
        if name is None:
            continue
        if name or conversion or "{" in (spec or ""):
            raise ValueError(f"only {{}} and {{:spec}} stand for operands, found {{{name}{'!' + conversion if conversion else ''}}}")
        format(0.0, spec or "")
        count += 1
    return count


def formatted(template: str, values: Sequence[Any]) -> str:
    """The line."""
    rest = iter(values)
    parts: list[str] = []
    for text, name, spec, _ in Formatter().parse(template):
        parts.append(text)
        if name is not None:
            parts.append(shown(next(rest), spec or ""))
    return "".join(parts)


def shown(value: Any, spec: str) -> str:
    """A number, or an array as numpy shows it; `spec` is how each number is written."""
    array = np.asarray(value)
    if array.dtype.kind == "V":  # a narrow float of ml_dtypes
        array = array.astype(np.float32)
    if array.ndim == 0:
        return format(array[()].item(), spec) if spec else str(array[()])
    if not spec:
        return np.array2string(array, separator=" ")
    return np.array2string(array, separator=" ", formatter={"all": lambda x: format(np.asarray(x).item(), spec)})
