"""`gradir-run`: run a function of a module, or of a saved artefact, on arrays given on the command line.

A saved artefact runs without xDSL and without the compiler.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gradir.errors import GradirError
from gradir.runtime.artefact import MAGIC
from gradir.tools.arrays import Array, read_array, show_array
from gradir.tools.plugins import load_file, load_installed
from gradir.tools.process import DIAGNOSED, OK, USAGE, exit_with

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from gradir.driver.check_nan import Watch

Runner = Callable[[Sequence[Array]], Sequence[Array]]


def main() -> None:
    """Entry point of the console script."""
    exit_with(run)


def run(arguments: Sequence[str]) -> int:
    """Run the tool in this process; the exit code: 0 fine, 1 the program failed, 2 the command line is wrong."""
    args = _parser().parse_args(arguments)
    try:
        inputs = [read_array(text) for text in args.input]
    except GradirError as error:
        return _fail(error, USAGE)
    args.watch = None
    try:
        if args.explain:
            return _explain(args, inputs)
        target = _kind(args)
        runner = _checked(args, target) if args.check_nan else _TARGETS[target](args)
        results = [np.asarray(result) for result in runner(inputs)]
    except GradirError as error:
        if error.location.startswith(f"{sys.argv[0]}:"):  # arguments that do not fit: what called the function is this tool
            error.location = ""
        return _fail(error, DIAGNOSED)
    except (OSError, UnicodeDecodeError) as error:
        return _fail(error, USAGE)
    sys.stdout.write("".join(show_array(result) + "\n" for result in results))
    if args.watch is not None:
        return _report_nan(args.watch, inputs)
    if args.bench:
        _bench(runner, inputs, args.bench)
    return OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gradir-run", allow_abbrev=False, description="Run a function on given arrays.")
    add = parser.add_argument
    add("file", metavar="FILE", help="MLIR text at any level (- reads standard input), or a saved artefact")
    add("-e", "--entry", default="", metavar="NAME", help="public function to run; may be left out if there is only one")
    add(
        "--target",
        default="cpu",
        type=_target,
        help="cpu, cuda, cuda:N, cuda:emulated, cuda:sm_NN: compile and run; reference: evaluate; runtime: run a saved artefact",
    )
    add("--input", action="append", default=[], metavar="ARRAY", help="SHAPExTYPE=VALUE, =random(SEED), =iota or @FILE.npy; one per input")
    add("--check-nan", action="store_true", help="compile without fusion and report each op that makes NaN or infinity of finite operands")
    add("--explain", nargs="?", const="-", default="", metavar="DIR", help="what each kernel does and costs: a table, or a page in DIR")
    add("--gpu", default="h200", metavar="CARD", help="with --explain of a program for CUDA: the card whose limits are the bounds")
    add("--bench", type=_count, default=0, metavar="N", help="run N more times, print times on stderr")
    add("-O", "--optimize", type=int, default=2, choices=(0, 1, 2), help="2 everything, 1 no fusion, 0 neither fusion nor simplification")
    add("--threads", type=_count, default=None, metavar="N", help="threads that a parallel kernel may use")
    add("--cpu", default="", metavar="NAME", help="processor or sm_NN to compile for, as LLVM calls it")
    add("--no-cache", action="store_true", help="compile anew, store nothing")
    add("--load", action="append", default=[], metavar="FILE.py", help="plugin; repeatable")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected a number from 1")
    return number


def _fail(error: Exception, code: int) -> int:
    sys.stderr.write(f"gradir-run: error: {error}\n")
    return code


def _target(text: str) -> str:
    if text in _TARGETS or text.startswith("cuda:"):
        return text
    raise argparse.ArgumentTypeError(f"expected {', '.join(_TARGETS)}, cuda:N, cuda:emulated or cuda:sm_NN, not '{text}'")


def _kind(args: argparse.Namespace) -> str:
    """The row of `_TARGETS` that runs the file."""
    kind = args.target.partition(":")[0]
    return "runtime" if kind in ("cpu", "cuda") and _is_artefact(args.file) else kind


def _is_artefact(path: str) -> bool:
    if path == "-":
        return False
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _on_runtime(args: argparse.Namespace) -> Runner:
    from gradir.runtime import load  # the runtime's loader (llvmlite), not needed by the reference

    module = load(args.file, args.target if args.target.startswith("cuda") else "")
    return _function_of(module, args)


def _on_cpu(args: argparse.Namespace) -> Runner:
    from gradir.driver.compile import compile_module  # the compiler: a saved artefact runs without it

    target = f"cpu:{args.cpu}" if args.cpu else "host"
    module = compile_module(_module(args), target=target, threads=args.threads, optimize=args.optimize, cache=not args.no_cache)
    return _function_of(module, args)


def _on_cuda(args: argparse.Namespace) -> Runner:
    from gradir.driver.compile import compile_module  # the compiler: a saved artefact runs without it

    target = f"{args.target}:{args.cpu}" if args.cpu else args.target
    return _function_of(compile_module(_module(args), target=target, optimize=args.optimize, cache=not args.no_cache), args)


def _checked(args: argparse.Namespace, target: str) -> Runner:
    from gradir.driver.check_nan import compile_checked  # the compiler: a saved artefact runs without it

    if target != "cpu":
        raise GradirError(
            "only compiled modules are checked for NaN",
            part="graph",
            code="GR054",
            expected="--target=cpu and MLIR text",
            found="a saved artefact" if target == "runtime" else f"--target={target}",
            hint="leave --check-nan out, or give it the module's text",
        )
    module, args.watch = compile_checked(_module(args), target=f"cpu:{args.cpu}" if args.cpu else "host", threads=args.threads)
    return _function_of(module, args)


def _explain(args: argparse.Namespace, inputs: Sequence[Array]) -> int:
    """Run the program and print a table of its kernels on stdout, or write a page; a saved artefact tells what it was compiled to."""
    kind = args.target.partition(":")[0]
    if kind in ("cpu", "cuda") and _is_artefact(args.file):
        from gradir.runtime import load  # no compiler

        sys.stdout.write(load(args.file).explain())
        return OK
    if kind not in ("cpu", "cuda") or args.check_nan:
        raise GradirError(
            "only compiled programs can be explained",
            part="runtime",
            code="RT065",
            expected="--target=cpu or cuda, without --check-nan",
            found="--check-nan" if args.check_nan else f"--target={args.target}",
            hint="leave it out",
        )
    from gradir.driver.explain import explain_target, save_page  # the compiler

    host = f"cpu:{args.cpu}" if args.cpu else "host"
    target = host if kind == "cpu" else ":".join([args.target, *filter(None, [args.cpu])])
    entry = args.entry.removeprefix("@") or None
    settings: dict[str, Any] = {"target": target, "threads": args.threads, "optimize": args.optimize, "cache": not args.no_cache}
    found = explain_target(_module(args), inputs or None, entry=entry, gpu=args.gpu, **settings)
    sys.stdout.write(str(found))
    if args.explain != "-" and kind == "cuda":
        from gradir.driver.explain.cuda import save_json

        sys.stderr.write(f"gradir-run: {save_json(cast('Any', found), args.explain)}\n")
    elif args.explain != "-":
        sys.stderr.write(f"gradir-run: {save_page(cast('Any', found), args.explain)}\n")
    return OK


def _report_nan(watch: Watch, inputs: Sequence[Array]) -> int:
    """What a watched run found, as diagnostics; the exit code."""
    for k, array in enumerate(inputs):
        if array.dtype.kind not in "iub" and not np.isfinite(array).all():
            sys.stderr.write(f"gradir-run: note: input {k} is not finite already\n")
    for severity, found in (("error", watch.findings), ("note", watch.notes)):
        for finding in found:
            place = finding.site.location or finding.site.function
            sys.stderr.write(f"{place}: {severity}: {finding.text}{' [runtime RT040]' if severity == 'error' else ''}\n")
    if not watch.findings:
        sys.stderr.write("gradir-run: no op makes NaN or infinity of finite operands\n")
    return DIAGNOSED if watch.findings else OK


def _on_reference(args: argparse.Namespace) -> Runner:
    from gradir.driver.evaluate import evaluate_level1  # the compiler: a saved artefact runs without it
    from gradir.ir.structure import public_functions

    module = _module(args)
    entry = _entry([function.sym_name.data for function in public_functions(module)], args.entry)
    return lambda inputs: evaluate_level1(module, entry, inputs)


_TARGETS: dict[str, Callable[[argparse.Namespace], Runner]] = {
    "cpu": _on_cpu,
    "cuda": _on_cuda,
    "reference": _on_reference,
    "runtime": _on_runtime,
}


def _module(args: argparse.Namespace) -> ModuleOp:
    for path in args.load:
        load_file(path)
    load_installed()
    from gradir.ir.text import parse_module  # xDSL: a saved artefact runs without it

    if args.file == "-":
        return parse_module(sys.stdin.read(), "<stdin>")
    with open(args.file, encoding="utf-8") as file:
        return parse_module(file.read(), args.file)


def _function_of(module: Any, args: argparse.Namespace) -> Runner:
    function = module[_entry([function.name for function in module], args.entry)]
    if args.threads is not None:
        function.set_threads(args.threads)
    return lambda inputs: function.flat(*inputs)


def _entry(names: Sequence[str], wanted: str) -> str:
    wanted = wanted.removeprefix("@")
    if not wanted and len(names) == 1:
        return names[0]
    if wanted in names:
        return wanted
    raise GradirError(
        f"no public function @{wanted}" if wanted else "several public functions: --entry must name one",
        part="graph",
        code="GR052",
        expected=", ".join(f"@{name}" for name in names) or "a public function with a body",
        found=f"@{wanted}" if wanted else "no --entry",
        hint="--entry NAME",
    )


def _bench(runner: Runner, inputs: Sequence[Array], times: int) -> None:
    seconds: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        runner(inputs)
        seconds.append(time.perf_counter() - began)
    least, middle = min(seconds) * 1e6, statistics.median(seconds) * 1e6
    sys.stderr.write(f"gradir-run: {times} runs: fastest {least:.1f} us, median {middle:.1f} us\n")


if __name__ == "__main__":
    main()
