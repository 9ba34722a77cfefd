"""The part of a build that programs for CUDA have of their own: host code and PTX from one level-4 module, a cubin where one is wanted."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from gradir.dialects.target import CudaTargetAttr, host_target
from gradir.driver.report import LEVELS, CompileReport
from gradir.ir.text import print_module
from gradir.runtime.cuda.spec import CONSTANT_ALIGNMENT, DeviceSpec, KernelSpec, LaunchSpec, ParameterSpec
from gradir.targets.cpu import compile_object
from gradir.targets.llvm.device_host import HostTranslation, Kernel, translate_host
from gradir.targets.nvptx import KernelReport, assemble, find_ptxas, to_ptx


def cuda_objects(
    module: ModuleOp, machine: CudaTargetAttr, report: CompileReport, *, emulated: bool
) -> tuple[list[bytes], DeviceSpec, HostTranslation]:
    """Objects of a level-4 module: host code, PTX, a cubin (where `ptxas` is found and a GPU is meant), constants."""
    if report.keep_ir:
        report.ir[LEVELS[4]] = print_module(module)
    with report.stage("emit"):
        host = translate_host(module, host_target())
    with report.stage("llvm"):
        objects = [compile_object(host.text, host_target())]
    ptx = ""
    if host.launches:
        with report.stage("ptx"):
            ptx = to_ptx(module)
    if report.keep_ir:
        report.ir[LEVELS[5]] = f"{host.text}\n{ptx}"
    objects.append(ptx.encode())
    assembled: dict[str, KernelReport] = {}
    cubin = constants = -1
    if ptx and not emulated and find_ptxas() is not None:
        with report.stage("ptxas"):
            code, rows = assemble(ptx, machine.arch)
        assembled = {row.name: row for row in rows}
        cubin = len(objects)
        objects.append(code)
    if host.constants:
        constants = len(objects)
        objects.append(b"".join(data + bytes(-len(data) % CONSTANT_ALIGNMENT) for data in host.constants))
    spec = DeviceSpec(
        machine.arch,
        1,
        cubin,
        constants,
        tuple(map(len, host.constants)),
        host.scratch,
        tuple(_kernel(kernel, assembled.get(kernel.name), host.shared.get(kernel.name, 0)) for kernel in host.kernels),
        tuple(LaunchSpec(launch.kernel, launch.op_id) for launch in host.launches),
    )
    report.kernels_compiled = report.kernels = len(host.kernels)
    return objects, spec, host


def _kernel(kernel: Kernel, known: KernelReport | None, dynamic: int) -> KernelSpec:
    parameters = tuple(ParameterSpec(p.bytes, p.element, p.sizes, p.strides, p.access) for p in kernel.parameters)
    spec = KernelSpec(kernel.name, parameters, dynamic)
    return spec if known is None else replace(spec, registers=known.registers, shared=known.shared, spills=known.spills)
