"""Questions with only one right answer. Each takes a program's text and a seed and gives a complaint, or nothing.

A `GradirError` in the place of an answer is fine where the question allows a refusal; any other exception is a complaint.
"""

from __future__ import annotations

import io
import signal
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
from xdsl.dialects.builtin import Float64Type, ModuleOp, TensorType
from xdsl.ir import Attribute, Block

from gradir.autodiff.differentiate import Differentiate
from gradir.dialects import ad
from gradir.dialects.registry import make_context
from gradir.dialects.upstream.func import FuncOp, ReturnOp
from gradir.driver.compile import compile_module
from gradir.errors import GradirError
from gradir.ir.builder import Builder, new_function
from gradir.ir.passes import PassContext
from gradir.ir.structure import public_functions
from gradir.ir.text import parse_module, print_module, verify_module
from gradir.reference import SemanticsChecker, compare, expectations, run
from gradir.reference.inputs import generate
from gradir.reference.run import input_types
from gradir.tools.fuzz.gradients.questions import QUESTIONS
from gradir.tools.fuzz.refusal import RefusedError
from gradir.tools.pass_manager import plan
from gradir.tools.session import Input, Session, Settings
from gradir.tools.timing import Timer

Oracle = Callable[[str, int], str | None]
"""`oracle(text, seed)`: what is wrong, None if nothing is."""

SECONDS = 20
"""An answer that takes longer is a complaint: a loop without end, or a cost that explodes."""


class SlowError(BaseException):
    """The time for one answer is over. Like Ctrl-C it is nothing that a pass or a verifier may take for its own failure."""


def ask(name: str, text: str, seed: int, seconds: int = SECONDS) -> str | None:
    """The answer of the oracle called `name`; exceptions become complaints. Raises `RefusedError`."""
    try:
        with _limited(seconds):
            return ORACLES[name](text, seed)
    except SlowError as error:
        if name in PATIENT:
            raise RefusedError("slow") from error
        return f"no answer within {seconds} s{_place(error)}"
    except RefusedError:
        raise
    except GradirError as error:
        raise RefusedError(error.code) from error
    except RecursionError as error:
        return f"RecursionError{_place(error)}"
    except Exception as error:  # whatever it is, a user would see a traceback
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}{_place(error)}"


CRASHED = "crashed its own verifier"
"""What the verifier says about an exception in the verifier of an op."""


def round_trip(text: str, seed: int) -> str | None:
    """What is printed is read back, in short and generic form and with locations, and prints the same."""
    try:
        module = parse_module(text)
    except GradirError as error:
        if CRASHED in error.message:
            return error.message
        raise
    plain = print_module(module)
    for generic, debuginfo in ((False, False), (True, False), (False, True)):
        shown = print_module(module, generic=generic, debuginfo=debuginfo)
        try:
            again = print_module(parse_module(shown))
        except GradirError as error:
            return f"printed text (generic={generic}, locations={debuginfo}) is refused: {error.message} at {error.location}"
        if again != plain:
            lines = zip(plain.splitlines(), again.splitlines())
            first = next((f"{a.strip()} became {b.strip()}" for a, b in lines if a != b), "the length differs")
            return f"printed text (generic={generic}, locations={debuginfo}) reads differently: {first}"
    return None


def damaged(text: str, seed: int) -> str | None:
    """Wrong text gets diagnostics (GR010, GR011); text that is right after all keeps its form and survives simplification."""
    return round_trip(text, seed) or _through("canonicalize,nd-simplify,cse,dce,inline,symbol-dce", text, None)


PIPELINES = (
    "inline,symbol-dce,canonicalize,nd-simplify,cse,dce",
    "nd-simplify,canonicalize,cse,nd-expand,nd-simplify,canonicalize,dce",
    "nd-expand,canonicalize,inline,cse",
    "to-structured{target=cpu}",
    "to-structured{target=cpu}",
    "to-structured{target=cpu},to-buffers",
    "to-structured{target=cpu},to-buffers,to-loops",
    "to-structured{target=cuda:sm_80}",
)
"""From which a seed chooses; the whole road costs most, because level 4 runs slowly in the evaluator."""


def has_corners(text: str) -> bool:
    """Whether NaN and infinities in the inputs have one right answer: those of complex products and quotients have not."""
    return "complex" not in text


def semantics(text: str, seed: int) -> str | None:
    """Every pass of a pipeline keeps the meaning, special values included every other time."""
    checker = SemanticsChecker(seed % 1000, 2, special=seed % 2 == 1 and has_corners(text))
    return _through(PIPELINES[seed % len(PIPELINES)], text, checker)


def _through(pipeline: str, text: str, checker: SemanticsChecker | None) -> str | None:
    source = Input("<fuzz>", text)
    if checker is not None:
        checker.start(parse_module(text))  # a program without a meaning is refused
    session = Session(make_context(), source, Settings(), Timer(0.0), io.StringIO(), checker)
    if session.run(plan(pipeline)) is not None:
        return None
    first = session.engine.errors[0]
    refusal = first.cause is not None and not session.crashed and first.cause.code not in WRONG
    if refusal and first.cause is not None:
        raise RefusedError(first.cause.code)
    return f"{pipeline}: {first.message}" + "".join(f"; {n.message}" for n in first.notes if "\n" not in n.message)[:300]


WRONG = frozenset(f"OP{number}" for number in range(100, 115)) | {"GR011"}
"""Codes that a pass must not lead to: the evaluator's, and invalid IR."""


def compiled(text: str, seed: int) -> str | None:
    """Compiled code gives what the evaluator gives, whatever is optimised, with one thread and two."""
    module = parse_module(text)
    cases = [
        (f.sym_name.data, generate(input_types(f), seed % 1000, k, special=k == 1 and has_corners(text)))
        for f in public_functions(module)
        for k in range(2)
    ]
    wanted = [expectations(module, name, inputs, seed=seed % 1000) for name, inputs in cases]
    code = compile_module(module, cache=False, optimize=seed % 3, threads=1 + seed % 2)
    for (name, inputs), expected in zip(cases, wanted):
        found = code[name].flat(*inputs)
        total = sum(each.value.size for each in expected)
        if sum(int(np.count_nonzero(each.unstable)) for each in expected) > max(1, total // 100):
            raise RefusedError("unstable")
        for k, (want, got) in enumerate(zip(expected, found, strict=True)):
            if (difference := compare(want, got)) is not None:
                where = "" if difference.index is None else f"[{', '.join(map(str, difference.index))}]"
                return f"optimize={seed % 3}: result {k} of @{name} {where}: expected {difference.expected}, found {difference.found}"
    return None


STRAIGHT_THROUGH = frozenset({"nd.reduce_precision", "nd.quantize", "nd.dequantize", "ad.stop_gradient"})
"""Ops whose derivative is not that of the function that they compute."""


def gradient(text: str, seed: int) -> str | None:
    """In f64, the derivative along a random direction is that of central differences, where both sides of the point agree on it."""
    module = parse_module(text.replace("bf16", "f64").replace("f16", "f64").replace("f32", "f64"))
    (name, function), *_ = [(f.sym_name.data, f) for f in public_functions(module)] or [("", None)]
    if function is None:
        raise RefusedError("no function")
    if any(op.name in STRAIGHT_THROUGH for op in module.walk()):
        raise RefusedError("a derivative by convention")
    inputs = generate(input_types(function), seed % 1000, 0)
    rng = np.random.default_rng(seed)
    wrt = [k for k, x in enumerate(inputs) if x.dtype == np.float64 and x.size]
    outputs = function.function_type.outputs.data
    if not wrt or not any(_is_f64(kind) for kind in outputs):
        raise RefusedError("nothing to differentiate")
    results = run(module, name, inputs)
    cts = [rng.standard_normal(r.shape) if r.dtype == np.float64 else np.zeros(r.shape, r.dtype) for r in map(np.asarray, results)]
    directions = {k: rng.standard_normal(inputs[k].shape) for k in wrt}
    gradients = run(_with_vjp(module, function, wrt), "fuzz_vjp", [*inputs, *cts])[len(cts) :]
    found = float(sum(np.sum(g * directions[k]) for k, g in zip(wrt, gradients)))
    scale = float(sum(np.sum(np.abs(g * directions[k])) for k, g in zip(wrt, gradients)))

    def along(t: float) -> float:
        moved = [x + t * directions[k] if k in directions else x for k, x in enumerate(inputs)]
        values = run(module, name, moved)
        return float(sum(np.sum(c * v) for c, v in zip(cts, values) if c.dtype == np.float64))

    with np.errstate(all="ignore"):
        slopes = [(along(h) - along(-h)) / (2 * h) for h in (1e-5, 3e-6)]
        sides = [(along(1e-5) - along(0.0)) / 1e-5, (along(0.0) - along(-1e-5)) / 1e-5]
    size = max(map(abs, [*slopes, *sides]))
    if not np.isfinite([*slopes, *sides]).all() or max(abs(s - slopes[0]) for s in (*slopes, *sides)) > 1e-3 * size + 1e-6:
        raise RefusedError("not smooth there")
    if not abs(found - slopes[1]) <= 1e-2 * max(size, 1e-2 * scale) + 1e-5:
        return f"derivative along a direction: expected {slopes[1]:.9g} by central differences, found {found:.9g}"
    return None


def _is_f64(kind: Attribute) -> bool:
    return isinstance(kind, TensorType) and isinstance(kind.element_type, Float64Type)


def _with_vjp(module: ModuleOp, function: FuncOp, wrt: list[int]) -> ModuleOp:
    """The module with a public `@fuzz_vjp(args, cotangents) -> (results, gradients)`, differentiated and verified."""
    asked = module.clone()
    outputs = function.function_type.outputs.data
    block = Block(arg_types=[*function.function_type.inputs.data, *outputs])
    request = ad.VjpOp.make(function.sym_name.data, list(block.args), wrt, outputs)
    block.add_op(request)
    Builder(block).op(ReturnOp, list(request.results))
    asked.body.block.add_op(new_function("fuzz_vjp", block, [result.type for result in request.results]))
    verify_module(asked)
    Differentiate().apply(asked, PassContext())
    try:
        verify_module(asked)
    except GradirError as error:
        raise AssertionError(f"differentiate made invalid IR: {error.message}") from error
    return asked


ORACLES: Mapping[str, Oracle] = {
    "round-trip": round_trip,
    "semantics": semantics,
    "compiled": compiled,
    "gradient": gradient,
    "damaged": damaged,
    **QUESTIONS,
}

PATIENT = frozenset({"semantics", "compiled", "gradient", *QUESTIONS})
"""Oracles that run the evaluator, which is slow by design: no answer in time is no complaint."""


@contextmanager
def _limited(seconds: int) -> Generator[None]:
    def over(_signal: int, _frame: FrameType | None) -> None:
        raise SlowError

    previous: Any = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def _place(error: BaseException) -> str:
    """Where in our own code the exception passed last: what tells one find from another."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "gradir" in frame.filename]
    return f" ({frames[-1].filename.rpartition('gradir/')[2]}:{frames[-1].lineno})" if frames else ""
