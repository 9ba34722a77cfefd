"""`python -m gradir.runtime.trial`: runs saved artefacts against each other in a process of its own, for the tuner.

Reads one JSON object from standard input: `{artefacts: [paths], inputs: path of an .npz of bytes, dtypes, shapes, sets, rounds, seconds}`.
The first artefact is the reference: the others have to give its results, within what moves when inputs move by one rounding
(see `Tolerance`), and must not write outside of their results. Writes one JSON object a line: `{start: k}` before anything is done with
artefact k, so that whoever waits knows which one crashed or hangs; `{checked: k, difference: text}`; at last the seconds per call of each
in each round, `{times: {k: [..]}}`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from gradir.runtime.dtypes import numpy_dtype
from gradir.runtime.module import Function, load

Array = np.ndarray[Any, np.dtype[Any]]

GUARD = 256
"""Bytes on either side of each result that nobody may write."""
MARK = 0xA5
SPREAD, FLOOR, SAMPLES = 8.0, 16.0, 3
"""Tolerance: so many times the deviation of so many runs on perturbed inputs, and so many roundings of the largest element."""


SPIN_SECONDS = 0.25
"""How long the threads of a vendor's BLAS go on spinning after a call, at the expense of whoever comes next."""


@dataclass(frozen=True)
class Tolerance:
    """The reference's results, and how far each element may be off: a computation in another order errs like one on inputs that are off by
    one rounding. Integers are exact. `unstable` elements (a comparison went another way) are not compared."""

    values: Sequence[Array]
    allowed: Sequence[Array]
    unstable: Sequence[Array]

    @classmethod
    def of(cls, call: Callable[[Sequence[Array]], Sequence[Array]], inputs: Sequence[Array]) -> Tolerance:
        """Run the reference on the inputs and on perturbed ones."""
        values = [np.array(value) for value in call(inputs)]
        generator = np.random.default_rng(0)
        runs = [[np.array(v) for v in call([_perturbed(x, generator) for x in inputs])] for _ in range(SAMPLES)]
        allowed: list[Array] = []
        unstable: list[Array] = []
        for k, value in enumerate(values):
            if not _is_float(value.dtype):
                allowed.append(np.zeros(value.shape))
                unstable.append(np.any([run[k] != value for run in runs], axis=0))
                continue
            with np.errstate(all="ignore"):
                wide = _wide(value)
                moved = [np.abs(_wide(run[k]) - wide) for run in runs]
                wild = np.any([np.isfinite(_wide(run[k])) != np.isfinite(wide) for run in runs], axis=0)
                largest = np.max(np.where(np.isfinite(moved), moved, 0.0), axis=0)
                scale = float(np.max(np.abs(wide), where=np.isfinite(wide), initial=0.0))
            allowed.append(SPREAD * largest + FLOOR * _epsilon(value.dtype) * scale)
            unstable.append(np.asarray(wild))
        return cls(values, allowed, unstable)

    def difference(self, found: Sequence[Array]) -> str:
        """What differs, the first element of the first result that does; empty if nothing does."""
        for k, (value, other, allowed, unstable) in enumerate(zip(self.values, found, self.allowed, self.unstable)):
            with np.errstate(all="ignore"):
                same = np.asarray((value == other) | ((value != value) & (other != other)))
                if _is_float(value.dtype):
                    same = same | (np.abs(_wide(other) - _wide(value)) <= allowed)
            bad = np.argwhere(~(same | unstable))
            if len(bad) or 100 * np.count_nonzero(unstable) > max(1, unstable.size):
                at = tuple(map(int, bad[0])) if len(bad) else ()
                return f"result {k} at {list(at)}: {value[at]!s} expected, {other[at]!s} found ({len(bad)} of {value.size} differ)"
        return ""


def _is_float(dtype: np.dtype[Any]) -> bool:
    """Also the types of ml_dtypes, whose kind is V."""
    return dtype.kind in "fV"


def _wide(x: Array) -> Array:
    return x.astype(np.float64)


def _epsilon(dtype: np.dtype[Any]) -> float:
    return float(ml_dtypes.finfo(dtype).eps)


def _perturbed(x: Array, generator: np.random.Generator) -> Array:
    if not _is_float(x.dtype):
        return x
    signs = generator.integers(-1, 2, x.shape)
    return np.asarray(_wide(x) * (1 + signs * _epsilon(x.dtype) / 2)).astype(x.dtype)


class Guarded:
    """Arrays for the results of a function, with marked bytes around each."""

    def __init__(self, like: Sequence[Array]) -> None:
        self._blocks = [np.full(2 * GUARD + value.nbytes + 64, MARK, np.uint8) for value in like]
        self._starts = [GUARD + -(block.ctypes.data + GUARD) % 64 for block in self._blocks]
        self.arrays: list[Array] = [
            block[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
            for block, start, value in zip(self._blocks, self._starts, like)
        ]

    def broken(self) -> bool:
        """Whether a mark was written."""
        sides = ((block[:start], block[start + array.nbytes :]) for block, start, array in zip(self._blocks, self._starts, self.arrays))
        return any(bool((side != MARK).any()) for pair in sides for side in pair)


def check(function: Function, tolerance: Tolerance, inputs: Sequence[Array]) -> str:
    """What is wrong with a candidate; empty if nothing is. Its results are made twice: they have to be the same bits."""
    runs = [Guarded(tolerance.values) for _ in range(2)]
    for run in runs:
        function.write(inputs, run.arrays)
        if run.broken():
            return "it writes outside of its results"
    if any(a.tobytes() != b.tobytes() for a, b in zip(runs[0].arrays, runs[1].arrays)):
        return "two runs give different bits"
    return tolerance.difference(runs[0].arrays)


def time_rounds(
    functions: Sequence[Function], sets: Sequence[Sequence[Array]], rounds: int, seconds: float, pauses: Sequence[float] = ()
) -> list[list[float]]:
    """Seconds per call of each function in each round; within a round functions take turns, in an order that rotates. `pauses` follow the
    turns of the functions."""
    like = functions[0].flat(*sets[0])
    outputs = [[np.empty_like(value) for value in like] for _ in sets]
    repeats = [_repeats(function, sets, outputs, seconds) for function in functions]
    times: list[list[float]] = [[] for _ in functions]
    for turn in range(rounds):
        for step in range(len(functions)):
            k = (turn + step) % len(functions)
            times[k].append(_timed(functions[k], sets, outputs, repeats[k]))
            if pauses and pauses[k]:
                time.sleep(pauses[k])
    return times


def _repeats(function: Function, sets: Sequence[Sequence[Array]], outputs: Sequence[Sequence[Array]], seconds: float) -> int:
    _timed(function, sets, outputs, len(sets))
    each = _timed(function, sets, outputs, len(sets))
    return max(len(sets), min(1_000_000, round(seconds / max(each, 1e-9))))


def _timed(function: Function, sets: Sequence[Sequence[Array]], outputs: Sequence[Sequence[Array]], repeats: int) -> float:
    count = len(sets)
    function.write(sets[-1], outputs[-1])
    began = time.perf_counter()
    for k in range(repeats):
        function.write(sets[k % count], outputs[k % count])
    return (time.perf_counter() - began) / repeats


def _say(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def run(job: dict[str, Any], say: Callable[[Any], None] = _say) -> None:
    """One job, as the module's docstring has it."""
    with np.load(job["inputs"], allow_pickle=False) as file:
        raw = [file[f"x{k}"] for k in range(len(file.files))]
    inputs = [x.view(numpy_dtype(name)).reshape(shape) for x, name, shape in zip(raw, job["dtypes"], job["shapes"])]
    functions: list[Function] = []
    pauses: list[float] = []
    good: list[int] = []
    tolerance: Tolerance | None = None
    for k, path in enumerate(job["artefacts"]):
        say({"start": k})
        module = load(path)
        function = module[job["entry"]] if job.get("entry") else next(iter(module))
        if tolerance is None:
            reference = function
            tolerance = Tolerance.of(lambda arrays, f=reference: f.flat(*arrays), inputs)
            problem = ""
        else:
            problem = check(function, tolerance, inputs)
        say({"checked": k, "difference": problem})
        if not problem:
            functions.append(function)
            spins = module.threads > 1 and any(spec.name.startswith("blas.") for spec in module.manifest.libraries)
            pauses.append(SPIN_SECONDS if spins else 0.0)
            good.append(k)
    sets = [[np.array(x) for x in inputs] for _ in range(max(1, int(job["sets"])))]
    say({"start": -1})
    times = time_rounds(functions, sets, int(job["rounds"]), float(job["seconds"]), pauses)
    say({"times": dict(zip(map(str, good), times))})


def main() -> int:
    run(json.load(sys.stdin))
    return 0


if __name__ == "__main__":
    sys.exit(main())
