"""A program that no cache has: the road through the passes, emission, object code, the manifest. `gradir.driver.compile` looks first.

Kernels whose structure is in the kernel cache are not lowered again, the others become objects, a few in each, the rest of the program
another. While the passes still lower the next kernels, worker processes make the objects of the last ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module

from xdsl.dialects.builtin import ModuleOp, StringAttr

from gradir.dialects.donation import aliases_of
from gradir.dialects.target import TARGET_ATTRIBUTE, CpuTargetAttr, CudaTargetAttr, host_target, target_of
from gradir.dialects.upstream.func import FuncOp
from gradir.driver.brief import is_brief
from gradir.driver.cache import Cache
from gradir.driver.kernels import code_weight, kernel_functions, name_by_structure, split_kernels
from gradir.driver.lower import run_passes
from gradir.driver.notes import kernel_notes
from gradir.driver.objects import WORTH_A_WORKER, Objects, compiling_objects
from gradir.driver.options import BuildOptions, Trees
from gradir.driver.pipelines import ROAD, OptionValue, Request
from gradir.driver.planned_memory import memory_of
from gradir.driver.progress import remaining
from gradir.driver.report import LEVELS, CompileReport
from gradir.driver.residuals import reporting
from gradir.driver.signatures import arena_bytes, library_of, signature_of, workspace_text
from gradir.driver.tuning.apply import apply_records
from gradir.driver.versions import toolchain, versions
from gradir.errors import GradirError
from gradir.ir.checks import drop_checks
from gradir.ir.structure import public_functions
from gradir.ir.text import print_module, verify_module
from gradir.runtime.manifest import FunctionSpec, KernelRef, Manifest, SourceLine, Target
from gradir.runtime.target import host_target as this_machine
from gradir.targets.cpu import compile_object
from gradir.targets.llvm.module import Translation, translate
from gradir.targets.workers import worker_limit

_LAST_PASS = {stage: [step.pass_name for step in ROAD if step.stage == stage][-1] for stage in ("tensor", "structured", "buffers")}
_SNAPSHOTS = {_LAST_PASS["tensor"]: LEVELS[1], _LAST_PASS["structured"]: LEVELS[2], _LAST_PASS["buffers"]: LEVELS[3]}
"""Pass -> the level whose text is complete after it."""


def build(
    module: ModuleOp, options: BuildOptions, entry: str | None, trees: Trees, store: Cache | None, report: CompileReport
) -> tuple[Manifest, list[bytes]]:
    """Manifest and objects of a module, which is consumed. Raises `GradirError` of whatever part failed."""
    drop_checks(module)
    if entry is not None:
        _keep_entry(module, entry)
    run_passes(module, [Request("name-sizes")], report)  # the manifest names the sizes of results
    specs = [signature_of(function) for function in public_functions(module)]
    if not specs:
        raise _no_functions()
    if report.keep_ir:
        report.ir[LEVELS[0]] = print_module(module)
    road(module, options, report, stages=("tensor", "structured"))
    outlined = kernel_functions(module)
    report.kernels, large = len(outlined), code_weight(outlined) >= WORTH_A_WORKER
    machine = target_of(module)
    if isinstance(machine, CudaTargetAttr):
        return _build_cuda(module, machine, options, specs, trees, report)
    with compiling_objects(machine, helped=large and not report.keep_ir) as compiling:
        road(module, options, report, stages=("buffers",))
        brief = _brief(module)
        notes = kernel_notes(module)
        if options.hooks.planned is not None:
            options.hooks.planned(module)
        alone = store is None and not (large and worker_limit())
        if report.keep_ir or alone:
            objects, kernels, host = _one_object(module, machine, report)
        else:
            objects, kernels, host = _several_objects(module, machine, store, compiling, report)
    functions = _completed(module, specs, trees, brief)
    manifest = Manifest(
        functions,
        tuple(kernels),
        _target(machine),
        _source_map(host),
        versions(),
        options.threads,
        {"kernels": notes},
        libraries=tuple(map(library_of, host.libraries)),
    )
    return manifest, objects


def _build_cuda(
    module: ModuleOp, machine: CudaTargetAttr, options: BuildOptions, specs: Sequence[FunctionSpec], trees: Trees, report: CompileReport
) -> tuple[Manifest, list[bytes]]:
    """The rest of the road for a GPU: host code for this machine, PTX for that one."""
    road(module, options, report, stages=("buffers",))
    notes = kernel_notes(module)
    if options.hooks.planned is not None:
        options.hooks.planned(module)
    functions = _completed(module, specs, trees, set())
    loops(module, report)
    if options.hooks.lowered is not None:
        options.hooks.lowered(module)
    cuda = import_module("gradir.driver.build_cuda")  # programs for the CPU need none of it
    objects, device, host = cuda.cuda_objects(module, machine, report, emulated=options.device == "cuda:emulated")
    details = {"kernels": notes}
    libraries = tuple(map(library_of, host.libraries))
    return Manifest(
        functions, (), _target(host_target()), _source_map(host), versions(), options.threads, details, libraries, device
    ), objects


def _completed(module: ModuleOp, specs: Sequence[FunctionSpec], trees: Trees, brief: set[str]) -> tuple[FunctionSpec, ...]:
    """The signatures with what the plan says."""
    arenas = {function.sym_name.data: arena_bytes(function) for function in public_functions(module)}
    workspaces = {function.sym_name.data: workspace_text(function) for function in public_functions(module)}
    aliases = {function.sym_name.data: aliases_of(function) for function in public_functions(module)}
    return tuple(
        replace(
            _complete(spec, arenas[spec.name], workspaces[spec.name], trees),
            brief=spec.name in brief,
            aliases=tuple((argument, result) for result, argument in aliases[spec.name].items()),
        )
        for spec in specs
    )


def _source_map(host: Translation) -> dict[int, SourceLine]:
    return {line.op_id: SourceLine(line.op, "", line.location, line.message) for line in host.assertions}


def _one_object(module: ModuleOp, machine: CpuTargetAttr, report: CompileReport) -> tuple[list[bytes], list[KernelRef], Translation]:
    """Everything in one object, kernels called directly."""
    loops(module, report)
    if report.keep_ir:
        report.ir[LEVELS[4]] = print_module(module)
    with report.stage("emit"):
        translation = translate(module, target=machine)
    if report.keep_ir:
        report.ir[LEVELS[5]] = translation.text
    with report.stage("llvm"):
        code = compile_object(translation.text, machine)
    report.kernels_compiled = report.kernels
    return [code], [], translation


def _several_objects(
    module: ModuleOp, machine: CpuTargetAttr, store: Cache | None, objects: Objects, report: CompileReport
) -> tuple[list[bytes], list[KernelRef], Translation]:
    """The host code in one object, kernels in those of the cache and, some together, in new ones."""
    with report.stage("kernel cache"):
        named = name_by_structure(module, f"{machine}\n{toolchain()}")
        known = store.find_kernels(named) if store is not None else {}
        split = split_kernels(module, named, list(known))
    place: dict[str, int] = {}
    for chunk in split.chunks:
        symbols = [kernel.sym_name.data for kernel in kernel_functions(chunk)]
        place.update(dict.fromkeys(symbols, objects.add(_translated(chunk, machine, report, exported=symbols).text)))
    host = _translated(split.host, machine, report, external_kernels=split.symbols)
    objects.add(host.text)
    with report.stage("llvm"):
        *codes, main = objects.finish()
    codes, place = [main, *codes], {symbol: at + 1 for symbol, at in place.items()}
    report.kernels_compiled, report.kernels_cached = len(place), len(known)
    with report.stage("kernel cache"):
        if store is not None:
            for position in sorted(set(place.values())):
                store.store_kernels([symbol for symbol, at in place.items() if at == position], codes[position])
        place.update(_add_objects(codes, known))
    return codes, [KernelRef(symbol, place[symbol]) for symbol in split.symbols], host


def _translated(
    module: ModuleOp, machine: CpuTargetAttr, report: CompileReport, *, external_kernels: Sequence[str] = (), exported: Sequence[str] = ()
) -> Translation:
    loops(module, report)
    with report.stage("emit"):
        return translate(module, external_kernels=external_kernels, exported=exported, target=machine)


def _add_objects(objects: list[bytes], known: Mapping[str, bytes]) -> dict[str, int]:
    """Append the cached objects that define the kernels `known`; kernel -> place in `objects`."""
    places: dict[int, int] = {}
    for code in known.values():
        if id(code) not in places:
            places[id(code)] = len(objects)
            objects.append(code)
    return {symbol: places[id(code)] for symbol, code in known.items()}


def road(module: ModuleOp, options: BuildOptions, report: CompileReport, stages: Sequence[str]) -> None:
    """The passes of these stages, those of the tuner's decisions and of whoever watches among them."""
    target: dict[str, OptionValue] = (
        {} if TARGET_ATTRIBUTE in module.attributes and options.target == "host" else {"target": options.target}
    )
    if options.threads is not None:
        target["threads"] = options.threads
    wanted = {step.pass_name for step in ROAD if step.stage in stages} | {"differentiate"}

    def after(name: str, op: ModuleOp) -> None:
        if report.keep_ir and name == "bufferize":
            report.memory = memory_of(op)
        if report.keep_ir and name in _SNAPSHOTS:
            report.ir[_SNAPSHOTS[name]] = print_module(op)

    requests = remaining(module, target, optimize=options.optimize)
    wanted_requests = [request for request in requests if request.name in wanted]
    if report.keep_ir:
        wanted_requests = list(map(reporting, wanted_requests))
    names = [request.name for request in wanted_requests]
    at = names.index("schedule-kernels") if "schedule-kernels" in names else 0
    run_passes(module, wanted_requests[:at], report, after)
    if options.hooks.outlined is not None and "schedule-kernels" in names:
        options.hooks.outlined(module)
    elif options.records is not None and "schedule-kernels" in names:
        report.kernels_tuned = len(apply_records(module, options.records))
    run_passes(module, wanted_requests[at:], report, after)


def loops(module: ModuleOp, report: CompileReport) -> None:
    """Level 3 to 4, verified: the last look before emission."""
    names = {step.pass_name for step in ROAD if step.stage == "loops"}
    run_passes(module, [request for request in remaining(module) if request.name in names], report)
    with report.stage("verify"):
        verify_module(module, classes=False)


def _keep_entry(module: ModuleOp, entry: str) -> None:
    functions = public_functions(module)
    name = entry.removeprefix("@")
    if name not in {function.sym_name.data for function in functions}:
        raise GradirError(
            f"the module has no public function '{entry}'",
            part="graph",
            code="GR052",
            expected=", ".join(f"@{function.sym_name.data}" for function in functions) or "a public function with a body",
            found=entry,
            hint="name one of them",
        )
    for function in functions:
        if function.sym_name.data != name:
            function.properties["sym_visibility"] = StringAttr("private")


def _brief(module: ModuleOp) -> set[str]:
    """Names of the public functions that run for less time than the GIL takes."""
    functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}
    return {function.sym_name.data for function in public_functions(module) if is_brief(function, functions)}


def _complete(spec: FunctionSpec, arena: int, workspace: str, trees: Trees) -> FunctionSpec:
    input_tree, output_tree = trees.get(spec.name, ("", ""))
    return replace(spec, arena_bytes=arena, workspace=workspace, input_tree=input_tree, output_tree=output_tree)


def _target(machine: CpuTargetAttr) -> Target:
    """Triple, CPU and the features that its code may use."""
    host = this_machine()
    triple = machine.triple or host.triple
    if machine.cpu == host.cpu:
        return Target(triple, machine.cpu, host.features)
    changes = [change.strip() for change in machine.features.split(",") if change.strip()]
    added = {change[1:] for change in changes if change[0] == "+"}
    removed = {change[1:] for change in changes if change[0] == "-"}
    return Target(triple, machine.cpu, tuple(sorted((set(machine.isa.features) | added) - removed)))


def _no_functions() -> GradirError:
    return GradirError(
        "the module has no public function",
        part="graph",
        code="GR052",
        expected="a public func.func with a body",
        found="none",
        hint="private functions are compiled only where a public one calls them",
    )
