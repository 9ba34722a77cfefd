"""`gradir-ptx`: run anybody's PTX without a GPU, and see what a text holds.

gradir-ptx list k.ptx
gradir-ptx run k.ptx --entry k --grid 4 --block 128 --arg 'f32[1024]=@x.npy' --arg 'f32[1024]=zeros' --arg u32=1000 --out 1=y.npy
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradir.errors import GradirError
from gradir.ptx.instructions import compiled
from gradir.ptx.launch import launch, module_of
from gradir.ptx.reports import Reports
from gradir.ptx.syntax import Function, PtxModule, Variable
from gradir.tools.arrays import show_array
from gradir.tools.kernel_arguments import KernelArgument, read_argument
from gradir.tools.process import DIAGNOSED, OK, USAGE, exit_with


def main() -> None:
    """Entry point of the console script."""
    exit_with(run)


def run(arguments: Sequence[str]) -> int:
    """Run the tool in this process; the exit code: 0 fine, 1 something is reported of the kernel, 2 the command line is wrong."""
    args = _parser().parse_args(arguments)
    try:
        text = sys.stdin.read() if args.file == "-" else _read(args.file)
    except (OSError, UnicodeDecodeError) as error:
        return _fail(error, USAGE)
    try:
        return _list(text) if args.action == "list" else _run(args, text)
    except GradirError as error:
        return _fail(error, USAGE if error.code in ("RT051", "OP064") else DIAGNOSED)
    except OSError as error:
        return _fail(error, USAGE)


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _fail(error: Exception, code: int) -> int:
    sys.stderr.write(f"gradir-ptx: error: {error}\n")
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gradir-ptx", allow_abbrev=False, description="PTX without a GPU.")
    actions = parser.add_subparsers(dest="action", required=True, metavar="run | list")
    listing = actions.add_parser(
        "list", allow_abbrev=False, help="kernels, their parameters and memory, instructions that the emulator lacks"
    )
    listing.add_argument("file", metavar="FILE", help="PTX text (- reads standard input)")
    running = actions.add_parser("run", allow_abbrev=False, help="run a kernel in the emulator")
    add = running.add_argument
    add("file", metavar="FILE", help="PTX text (- reads standard input)")
    add("-e", "--entry", default="", metavar="NAME", help="kernel; may be left out if there is only one")
    add("--grid", type=_size, default=(1, 1, 1), metavar="X[,Y[,Z]]", help="blocks (1)")
    add("--block", type=_size, required=True, metavar="X[,Y[,Z]]", help="threads of a block")
    add(
        "--arg",
        action="append",
        default=[],
        metavar="ARG",
        help="one per parameter, in order: TYPE[SIZES]=VALUE for an array, with zeros, undefined, iota, random(SEED), a number, a list or "
        "@FILE.npy, and ;box=SIZES[;swizzle=BYTES][;fill=nan] behind it for a tensor map; TYPE=NUMBER for a scalar; bytes=HEX or "
        "bytes=@FILE for a structure",
    )
    add("--out", action="append", type=_out, default=[], metavar="N=FILE.npy", help="write argument N (from 0) to a file; repeatable")
    add("--shared", type=int, default=0, metavar="BYTES", help="dynamic shared memory of a block")
    add("--seed", type=int, default=None, metavar="N", help="run warps in random order and pieces")
    add("--together", action="store_true", help="all blocks resident at once, as in a cooperative launch")
    add("--check", action=argparse.BooleanOptionalAction, default=True, help="end with 1 if anything is reported (default)")
    add("--advice", action="store_true", help="say which accesses move more than they need to")
    return parser


def _size(text: str) -> tuple[int, int, int]:
    parts = [int(part) for part in text.split(",")]
    if not 1 <= len(parts) <= 3 or min(parts) < 1:
        raise argparse.ArgumentTypeError("expected one to three numbers from 1")
    full = (*parts, 1, 1)
    return full[0], full[1], full[2]


def _out(text: str) -> tuple[int, str]:
    number, equals, path = text.partition("=")
    if not equals or not number.isdecimal() or not path:
        raise argparse.ArgumentTypeError("expected N=FILE.npy")
    return int(number), path


# list


def _list(text: str) -> int:
    module = module_of(text)
    version = ".".join(map(str, module.version))
    count = len(module.entries())
    lines = [f"PTX {version} for {module.target}, {count} kernel{'' if count == 1 else 's'}"]
    missing: list[str] = []
    for name, function in module.functions.items():
        if function.body or function.entry:
            lines += ["", *_described(module, function)]
            missing += (found := _unknown(function))
            lines += [f"  not emulated: {op}" for op in found]
        elif name not in ("vprintf", "__assertfail", "malloc", "free"):
            lines += ["", f"{name}: declared, without a body"]
    sys.stdout.write("\n".join(lines) + "\n")
    return DIAGNOSED if missing else OK


def _described(module: PtxModule, function: Function) -> list[str]:
    variables = [*module.variables.values(), *function.variables.values()]
    shared = sum(v.size for v in variables if v.space == "shared")
    dynamic = any(v.space == "shared" and v.extern for v in variables)
    limits = ", ".join(f".{key} {', '.join(map(str, found))}" for key, found in function.limits.items())
    memory = f"  shared memory: {shared} bytes{' and what the launch gives' if dynamic else ''}"
    local = sum(v.size for v in function.variables.values() if v.space == "local")
    return [
        f"{'kernel' if function.entry else 'function'} {function.name}: {len(function.body)} instructions"
        + (f", {limits}" if limits else ""),
        *(f"  {k}: {_spelled(parameter)}" for k, parameter in enumerate(function.parameters)),
        memory + (f", local memory: {local} bytes" if local else ""),
    ]


def _spelled(parameter: Variable) -> str:
    single = parameter.size in (0, np.dtype("u8").itemsize) or not parameter.type.startswith("b8")
    return f".{parameter.type} {parameter.name}" + ("" if single else f"[{parameter.size}], aligned to {parameter.align}")


def _unknown(function: Function) -> list[str]:
    """Instructions that the emulator has no meaning for, each with its first line."""
    found: dict[str, str] = {}
    for op in function.body:
        try:
            compiled(replace(function, body=(op,)))
        except GradirError as error:
            found.setdefault(op.name, f"{op.name} ({error.location})")
    return list(found.values())


# run


def _run(args: argparse.Namespace, text: str) -> int:
    given = [read_argument(spelled) for spelled in args.arg]
    for position, path in args.out:
        if position >= len(given) or not isinstance(given[position].value, np.ndarray):
            raise GradirError(
                f"there is no array {position} to write to {path}",
                part="runtime",
                code="RT051",
                expected=f"the position of an array among {len(given)} arguments, counted from 0",
                found=str(position),
            )
    before = [argument.value.copy() if isinstance(argument.value, np.ndarray) else None for argument in given]
    reports = launch(
        text,
        args.entry,
        grid=args.grid,
        block=args.block,
        args=_values(module_of(text), args.entry, given),
        shared=args.shared,
        seed=args.seed,
        undefined=[k for k, argument in enumerate(given) if argument.undefined and not argument.box],
        check=False,
        together=args.together,
        advice=args.advice,
    )
    sys.stdout.write("".join(reports.printed))
    written = {position for position, _ in args.out}
    for position, path in args.out:
        np.save(path, given[position].value)
    for position, (argument, old) in enumerate(zip(given, before)):
        if old is not None and position not in written and argument.value.tobytes() != old.tobytes():
            sys.stdout.write(f"{position}: {show_array(argument.value)}\n")
    return _reported(args, reports)


def _values(module: PtxModule, entry: str, given: Sequence[KernelArgument]) -> list[Any]:
    """Arrays that stand for structures become their bytes."""
    names = [entry] if entry in module.functions else list(module.entries())[:1]
    parameters = module.functions[names[0]].parameters if names else ()
    return [
        argument.value.tobytes()
        if isinstance(argument.value, np.ndarray) and not argument.box and k < len(parameters) and _is_structure(parameters[k])
        else argument.passed()
        for k, argument in enumerate(given)
    ]


def _is_structure(parameter: Variable) -> bool:
    return parameter.type == "b8" and parameter.size > 1


def _reported(args: argparse.Namespace, reports: Reports) -> int:
    for entry in reports.advice:
        sys.stderr.write(f"gradir-ptx: advice: {entry}\n")
    for report in reports.mistakes:
        sys.stderr.write(f"gradir-ptx: {report}\n")
    return DIAGNOSED if reports.mistakes and args.check else OK
