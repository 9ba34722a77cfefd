"""Running StableHLO's own test data: one-op programs that carry their inputs and expected results.

A case passes where `@main` gives what `@expected` gives: exactly where the case says `check.expect_eq`, else within `TOLERANCE`. Cases
run in a process of their own, so that a crash of compiled code is one failed case.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradir.driver.compile import compile_module
from gradir.errors import GradirError
from gradir.frontends.stablehlo import import_text
from gradir.reference import run

Array = np.ndarray[Any, Any]

SUITES_VARIABLE = "GRADIR_SUITES"
"""Environment variable: the folder that holds `stablehlo-testdata.tar.xz` and `jax-programs`."""

ARCHIVE = "stablehlo-testdata.tar.xz"
TOLERANCE = {"float64": 1e-8, "float32": 1e-4, "float16": 1e-2, "bfloat16": 3e-2, "complex128": 1e-8, "complex64": 1e-4}
"""Element type -> difference allowed, relative to the expected (absolute) value or to 1."""

_CHECK = re.compile(r"^.*custom_call @check\.(\w+)\(.*$", re.M)


@dataclass(frozen=True)
class Outcome:
    """Of one case: `pass`, `fail`, `error` or `unsupported`, in the evaluator and compiled; `reason` of what did not pass."""

    case: str
    reference: str
    cpu: str
    reason: str = ""


def suites_folder() -> Path | None:
    """Where the suites lie: `$GRADIR_SUITES`, or `../shared/suites` beside the repository; None where they are not."""
    named = os.environ.get(SUITES_VARIABLE)
    folder = Path(named) if named else Path(__file__).parents[3] / "shared" / "suites"
    return folder if folder.is_dir() else None


@contextmanager
def cases(archive: Path) -> Generator[list[Path]]:
    """The files of the archive, unpacked while the context lasts."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        yield sorted(Path(folder).rglob("*.mlir"))


def run_case(path: Path, *, cpu: bool = True) -> Outcome:
    """Import, evaluate and, with `cpu`, compile and run one case."""
    text = path.read_text(encoding="utf-8")
    checks = [match[1] for match in _CHECK.finditer(text)]
    text = _CHECK.sub("", text).replace("func.func private @expected", "func.func public @expected")
    try:
        module = import_text(text, path.name)
    except GradirError as error:
        kind = "unsupported" if error.code == "GR120" else "error"
        return Outcome(path.name, kind, kind, reason_of(error))
    try:
        wanted = run(module, "expected", [])
        wrong = difference(run(module, "main", []), wanted, checks)
    except GradirError as error:
        return Outcome(path.name, "error", "error", reason_of(error))
    reference = "fail" if wrong else "pass"
    if not cpu:
        return Outcome(path.name, reference, "", wrong)
    try:
        found = compile_module(module, cache=False, entry="main")["main"]()
        compiled = difference(found if isinstance(found, tuple | list) else [found], wanted, checks)
    except GradirError as error:
        return Outcome(path.name, reference, "error", wrong or reason_of(error))
    return Outcome(path.name, reference, "fail" if compiled else "pass", wrong or compiled)


def reason_of(error: GradirError) -> str:
    """One line: of a list of missing things an element type, if that is why, else the ops."""
    lines = (
        [re.sub(r" \(also .*\)$", "", line.split(": ", 1)[-1]) for line in error.found.split("\n")]
        if error.code == "GR120" and error.found
        else [error.message]
    )
    types = [line for line in lines if "element type" in line]
    kinds = [re.sub(r"^.*(element type .*)$", r"\1", line) for line in types] or [line for line in lines if "complex" in line.lower()]
    return "; ".join(dict.fromkeys(kinds or lines))


def difference(found: Sequence[Any], wanted: Sequence[Array], checks: Sequence[str]) -> str:
    """What differs first; empty where nothing does."""
    if len(found) != len(wanted):
        return f"{len(found)} results, expected {len(wanted)}"
    for i, (value, want) in enumerate(zip(found, wanted)):
        got = np.asarray(value)
        if got.dtype != want.dtype or got.shape != want.shape:
            return f"result {i} is {got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
        exact = want.dtype.name not in TOLERANCE or (len(checks) == len(wanted) and checks[i] == "expect_eq")
        bad = np.argwhere(~_agree(got, want, 0.0 if exact else TOLERANCE[want.dtype.name]))
        if len(bad):
            at = tuple(int(n) for n in bad[0])
            return f"{len(bad)} of {want.size} elements of result {i} differ: at {list(at)} {got[at]}, expected {want[at]}"
    return ""


def _agree(got: Array, want: Array, tolerance: float) -> Array:
    if want.dtype.kind in "biu":
        return got == want
    if want.dtype.kind == "c":  # both parts, relative to the absolute value
        return _near(got.real, want.real, tolerance, np.abs(want)) & _near(got.imag, want.imag, tolerance, np.abs(want))
    return _near(got, want, tolerance, np.abs(want.astype(np.float64)))


def _near(got: Array, want: Array, tolerance: float, size: Array) -> Array:
    a, b = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= tolerance * np.maximum(1.0, np.where(np.isfinite(size), size, 1.0))
    return (a == b) | (np.isnan(a) & np.isnan(b)) | (near & np.isfinite(a) & np.isfinite(b))


def run_all(paths: Sequence[Path]) -> Iterator[Outcome]:
    """The outcomes of all cases, in order, from worker processes: one that dies fails its case."""
    left = list(paths)
    while left:
        command = [sys.executable, "-m", "gradir.tools.stablehlo_suite"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdin is not None and worker.stdout is not None
            while left:
                try:
                    worker.stdin.write(f"{left[0]}\n")
                    worker.stdin.flush()
                    line = worker.stdout.readline()
                except BrokenPipeError:
                    line = ""
                path = left.pop(0)
                if not line:
                    yield Outcome(path.name, "error", "error", "the process died")
                    break
                yield Outcome(**json.loads(line))
            else:
                worker.stdin.close()


def main() -> None:
    """A worker: a path per line in, an outcome per line out."""
    for line in sys.stdin:
        path = Path(line.strip())
        try:
            outcome = run_case(path)
        except Exception as error:  # a bug of ours is a result of the measurement, not its end
            outcome = Outcome(path.name, "error", "error", f"{type(error).__name__}: {error}")
        sys.stdout.write(json.dumps(asdict(outcome)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
