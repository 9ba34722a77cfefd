"""From a module at any level to callable machine code: the program cache first, then whoever builds what it lacks.

A program that the cache has costs neither a pass nor the import of one: `gradir.driver.build` is loaded when something has to be built.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from os import PathLike
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from gradir.dialects.target import CpuTargetAttr, cuda_place, is_cuda, parse_target, target_of
from gradir.dialects.target.implementations import calls_libraries, library_versions
from gradir.driver.cache import Cache, digest, open_cache
from gradir.driver.lower import collector_paused, read
from gradir.driver.memory import MemoryReport
from gradir.driver.options import BuildOptions, Hooks, Trees
from gradir.driver.report import CompileReport
from gradir.driver.threads import chosen_threads
from gradir.driver.tuning.records import Records
from gradir.driver.versions import toolchain
from gradir.errors import GradirError
from gradir.ir.text import print_module
from gradir.runtime.manifest import Manifest
from gradir.runtime.module import Module
from gradir.runtime.threads import available_threads


@cache
def _builder() -> Any:
    """`gradir.driver.build`: half a second of imports that a program from the cache need not pay."""
    return import_module("gradir.driver.build")


def compile_module(
    module: ModuleOp | str,
    *,
    target: str = "host",
    threads: int | None = None,
    optimize: int = 2,
    cache: bool | str | PathLike[str] | Cache = True,
    entry: str | None = None,
    trees: Trees | None = None,
    report: CompileReport | None = None,
) -> Module:
    """Compile the public functions of `module` (xDSL module or MLIR text, any level) for this machine's runtime; `module` is not changed.

    `target`: `host`, `cpu` or `cpu:NAME` with LLVM's processor name, `cuda` (the first GPU), `cuda:N`, `cuda:sm_NN`, `cuda:emulated`.
    `threads`: how many a parallel kernel may use (default: `GRADIR_NUM_THREADS`, else all that this process may run on).
    `optimize`: 2 everything, 1 a kernel for every op, 0 neither fusion nor simplification, for finding out where a result comes from.
    `cache`: true (the user's directory, `GRADIR_CACHE_DIR`), a directory, or false. `entry`: compile this function alone.
    Raises `GradirError` of whatever part failed.
    """
    if optimize not in OPTIMIZE:
        raise _no_such_setting(optimize)
    threads = chosen_threads(threads)
    target, device = placed(target)
    report = report if report is not None else CompileReport()
    kept = open_cache(cache)
    store, records = None if report.keep_ir else kept, _records(kept)
    with report.stage("hash"):
        machine = _machine(target, threads)
        tuned = records.state() if records is not None else ""
        key = _program_key(module, f"{machine} {device} optimize={optimize} {tuned}", entry, trees or {}) if store is not None else ""
    if store is not None:
        with report.stage("load"):
            found = store.find_program(key)
            report.program_cache = "hit" if found else "miss"
            if found is not None:
                loaded = Module(*found, device)
                _describe(report, loaded.manifest, loaded.objects)
                return loaded
    with collector_paused():
        op = read(module if isinstance(module, str) else module.clone(), report)
        manifest, objects = _builder().build(
            op, BuildOptions(target, threads, optimize, records=records, device=device), entry, trees or {}, store, report
        )
    _describe(report, manifest, objects)
    if store is not None:
        with report.stage("store"):
            store.store_program(key, manifest, objects)
    with report.stage("load"):
        return Module(manifest, objects, device)


def placed(target: str) -> tuple[str, str]:
    """(target for the passes, device): of a GPU that is not told the architecture of, the device is asked where there is one."""
    if not is_cuda(target):
        return target, ""
    device, arch = cuda_place(target)
    if not arch and device != "cuda:emulated":
        arch = import_module("gradir.runtime.cuda.present").architecture(device)  # only programs for a GPU ask
    return (f"cuda:{arch}" if arch else "cuda"), device


def memory_report(module: ModuleOp, *, target: str = "host", threads: int | None = None, optimize: int = 2) -> MemoryReport:
    """Where every buffer of the program lies and how long it lives, when it is compiled with these options; nothing is compiled."""
    report = CompileReport(keep_ir=True)
    op = module.clone()
    _builder().road(op, BuildOptions(target, chosen_threads(threads), optimize), report, stages=("tensor", "structured", "buffers"))
    machine = target_of(op)
    if not isinstance(machine, CpuTargetAttr):
        return report.memory
    _builder().loops(op, report)  # what kernels allocate stands at level 4
    return import_module("gradir.driver.planned_memory").with_scratch(report.memory, op, threads or machine.threads or available_threads())


def compile_watched(
    module: ModuleOp,
    hooks: Hooks,
    *,
    target: str = "host",
    threads: int | None = None,
    optimize: int = 2,
    cache: bool | str | PathLike[str] | Cache = True,
    entry: str | None = None,
    report: CompileReport | None = None,
) -> Module:
    """`compile_module` with `hooks` on the way: kernels are found in the cache, the program is compiled anew and not kept."""
    report = report if report is not None else CompileReport()
    target, device = placed(target)
    with collector_paused():
        op = read(module.clone(), report)
        store = open_cache(cache)
        options = BuildOptions(target, chosen_threads(threads), optimize, hooks, _records(store), device)
        manifest, objects = _builder().build(op, options, entry, {}, store, report)
    _describe(report, manifest, objects)
    return Module(manifest, objects, device)


def _records(store: Cache | None) -> Records | None:
    """The decisions of the tuner beside a cache; None where there are none."""
    records = Records(store.directory) if store is not None else None
    return records if records is not None and records.root.is_dir() else None


OPTIMIZE = (0, 1, 2)


def _machine(target: str, threads: int | None) -> str:
    return str(parse_target(target, threads=threads or 0))


def _program_key(module: ModuleOp | str, machine: str, entry: str | None, trees: Trees) -> str:
    """Locations are part of the key only where a failure at run time can show them."""
    text = module if isinstance(module, str) else print_module(module)
    if not isinstance(module, str) and (".assert" in text or calls_libraries(text)):
        text = print_module(module, debuginfo=True)
    return digest("program", text, machine, entry or "", repr(sorted(trees.items())), library_versions(text), toolchain())


def _describe(report: CompileReport, manifest: Manifest, objects: Sequence[bytes]) -> None:
    report.arena_bytes = {spec.name: spec.arena_bytes for spec in manifest.functions}
    report.object_bytes = sum(map(len, objects))
    report.kernels = report.kernels or len(manifest.kernels)


def _no_such_setting(found: object) -> GradirError:
    return GradirError(
        "no such optimisation setting",
        part="runtime",
        code="RT016",
        expected="optimize=0 (neither fusion nor simplification), 1 (no fusion) or 2",
        found=repr(found),
    )
