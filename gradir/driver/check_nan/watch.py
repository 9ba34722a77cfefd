"""What the calls see: rounds of loops, finite operands with results that are not, zeros times infinities."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from gradir.errors import GradirError
from gradir.runtime import library

Array = np.ndarray[Any, np.dtype[Any]]

NAME = "check.nan"
"""The function that instrumented programs call."""

_numbers = itertools.count()


@dataclass(frozen=True)
class Site:
    """One op that is looked at: the first `operands` arrays are its operands, the rest its results; `loops` are those around it."""

    op: str
    location: str
    function: str
    operands: int
    loops: tuple[int, ...]


@dataclass(frozen=True)
class Finding:
    """One op that made a number that is not finite of finite operands, or (`strong_zero`) met 0 times such a number: the first time."""

    site: Site
    value: str
    index: tuple[int, ...]
    count: int
    size: int
    operands: tuple[str, ...]
    rounds: tuple[tuple[str, int], ...]
    execution: int
    strong_zero: bool = False

    @property
    def text(self) -> str:
        """`nd.log makes -inf of finite operands at element [1] (1 of 4): #0 = 0.0; round 2 of the loop at f.py:3:1`"""
        what = "meets 0 times" if self.strong_zero else "makes"
        made = f"{self.value} (and gives 0)" if self.strong_zero else f"{self.value} of finite operands"
        operands = ", ".join(f"#{k} = {value}" for k, value in enumerate(self.operands))
        rounds = "".join(f"; round {number} of the loop at {place or 'an unknown place'}" for place, number in self.rounds)
        where = f"at element {list(self.index)} ({self.count} of {self.size})"
        return f"{self.site.op} {what} {made} {where}: {operands or 'no operands'}{rounds}"


@dataclass(eq=False)
class Watch:
    """The sites and loops of one program, and what a call of it found; `begin` starts a new call."""

    number: int = field(default_factory=lambda: next(_numbers))
    sites: list[Site] = field(default_factory=list[Site])
    loops: list[str] = field(default_factory=list[str])
    rounds: dict[int, int] = field(default_factory=dict[int, int])
    executions: dict[int, int] = field(default_factory=dict[int, int])
    found: dict[int, Finding] = field(default_factory=dict[int, Finding])
    strong_zeros: dict[int, Finding] = field(default_factory=dict[int, Finding])

    def add_site(self, site: Site) -> int:
        self.sites.append(site)
        return len(self.sites) - 1

    def add_loop(self, location: str) -> int:
        self.loops.append(location)
        return len(self.loops) - 1

    def begin(self) -> None:
        """Forget what was found before."""
        for table in (self.rounds, self.executions, self.found, self.strong_zeros):
            table.clear()

    @property
    def findings(self) -> list[Finding]:
        """In the order in which they happened; each op once."""
        return list(self.found.values())

    @property
    def notes(self) -> list[Finding]:
        """Each `nd.mul_strong` that met 0 times NaN or infinity: an IEEE product would be NaN there."""
        return list(self.strong_zeros.values())

    def look(self, config: Mapping[str, Any], arrays: Sequence[Array]) -> None:
        """One call of the program."""
        if "enter" in config:
            self.rounds[config["enter"]] = -1
        elif "round" in config:
            self.rounds[config["round"]] = self.rounds.get(config["round"], -1) + 1
        else:
            self._site(config["site"], arrays)

    def _site(self, number: int, arrays: Sequence[Array]) -> None:
        site = self.sites[number]
        execution = self.executions[number] = self.executions.get(number, -1) + 1
        operands, results = arrays[: site.operands], arrays[site.operands :]
        if site.op == "nd.mul_strong" and number not in self.strong_zeros:
            a, b = operands
            met = ((a == 0) & ~_finite(b)) | ((b == 0) & ~_finite(a))
            if met.any():
                bad = np.where(_finite(a), b, a)
                self.strong_zeros[number] = self._finding(site, bad, met, operands, execution, strong_zero=True)
        if number in self.found:
            return
        for result in results:
            bad = ~_finite(result)
            if bad.any() and all(bool(_finite(operand).all()) for operand in operands):
                self.found[number] = self._finding(site, result, bad, operands, execution)
                return

    def _finding(
        self, site: Site, values: Array, bad: Array, operands: Sequence[Array], execution: int, *, strong_zero: bool = False
    ) -> Finding:
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        shown = tuple(_shown(operand, index, values.shape) for operand in operands)
        rounds = tuple((self.loops[loop], self.rounds.get(loop, 0)) for loop in site.loops)
        count = int(np.count_nonzero(bad))
        return Finding(site, str(values[index]), index, count, max(1, values.size), shown, rounds, execution, strong_zero)

    def watched(self, flat: Callable[..., tuple[Any, ...]], name: str) -> Callable[..., tuple[Any, ...]]:
        """`flat`, raising the first finding of each call; zeros times infinities that did no harm are warnings."""

        def call(*leaves: Any) -> tuple[Any, ...]:
            self.begin()
            results = flat(*leaves)
            if (error := self.error(name)) is not None:
                raise error
            for note in self.notes:
                warnings.warn(f"{note.site.location}: {note.text}", RuntimeWarning, stacklevel=4)
            return results

        return call

    def error(self, function: str) -> GradirError | None:
        """The first finding as an error; the others in its hint."""
        if not self.found:
            return None
        first, *more = self.findings
        lines = [f"{finding.site.location or finding.site.op}: {finding.text}" for finding in (*more, *self.notes)]
        return GradirError(
            f"{first.site.op} makes {first.value} of finite operands",
            part="runtime",
            code="RT040",
            op=first.site.op,
            function=first.site.function or function,
            location=first.site.location,
            expected="finite results of finite operands",
            found=first.text,
            hint="; then ".join(lines[:5]) or "guard the operand, or move the op out of the range where it overflows",
        )


watches: WeakValueDictionary[int, Watch] = WeakValueDictionary()
"""The watches of the programs that are alive."""


def look(config: Mapping[str, Any], _shapes: Sequence[Any], *arrays: Array) -> Sequence[Array]:
    """What an instrumented program calls."""
    watch = watches.get(config["watch"])
    if watch is not None:
        watch.look(config, arrays)
    return ()


def _look(*arrays: Array, **config: Any) -> Sequence[Array]:
    return look(config, (), *arrays)


library.register(NAME, _look)


def _finite(array: Array) -> Array:
    if array.dtype.kind not in "fc":  # the types of ml_dtypes
        array = array.astype(np.float32)
    with np.errstate(all="ignore"):
        return np.asarray(np.isfinite(array))


def _shown(operand: Array, index: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """The operand's element at `index` where it has the shape of the result, else its range."""
    if operand.shape == shape:
        return str(operand[index])
    if operand.ndim == 0:
        return str(operand[()])
    if not operand.size or operand.dtype.kind == "c":
        return f"{operand.dtype}{list(operand.shape)}"
    wide = operand.astype(np.float64)
    with np.errstate(all="ignore"):
        return f"{operand.dtype}{list(operand.shape)} from {np.nanmin(wide):.6g} to {np.nanmax(wide):.6g}"
