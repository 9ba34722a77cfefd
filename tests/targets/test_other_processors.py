"""The same programs compiled for other processors: right results there, and no access that valgrind or an unmapped page objects to.

x86-64-v2 to v4 run here where this processor has their instructions; AArch64 runs under qemu. Skipped where the tools are not installed.
"""

from __future__ import annotations

import platform
import shutil
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import gradir as gd
from gradir.dialects.nd import Nd
from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.target import CpuTargetAttr, parse_target
from gradir.driver.lower import run_passes
from gradir.driver.pipelines import BEFORE_AD, Request
from gradir.driver.report import CompileReport
from gradir.ir.structure import public_functions
from gradir.ir.text import parse_module, print_module
from gradir.reference import compare, expectations
from gradir.runtime.target import host_target
from tests.targets.foreign import CallsLibrary, ForeignProgram, tools
from tests.targets.kernel_programs import PROGRAMS, KernelProgram

X86 = ["x86-64", "x86-64-v2", "x86-64-v3", "znver4"]
QEMU = ("qemu-aarch64",)
VALGRIND = ("valgrind", "-q", "--error-exitcode=99", "--track-origins=yes")


def target_named(name: str) -> CpuTargetAttr:
    target = parse_target("cpu", name, 2)
    assert isinstance(target, CpuTargetAttr)
    return target


def needs(target: CpuTargetAttr, *programs: str) -> None:
    """Skip where a tool or, for code that runs on this processor, an instruction set is missing."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    if tools(target) is None:
        pytest.skip("no assembler and linker for the target")
    if not target.triple:
        if platform.machine() != "x86_64" or platform.system() != "Linux":
            pytest.skip("no x86-64 Linux")
        missing = {f for f in target.isa.features if f not in host_target().features}
        if missing:
            pytest.skip(f"this processor lacks {', '.join(sorted(missing))}")


def text_of(program: KernelProgram) -> str:
    module = gd.jit(program.function).lower(*program.inputs())
    passes = [Request(step.pass_name) for step in BEFORE_AD if step.pass_name != "set-target"]
    run_passes(module, passes, CompileReport())  # the evaluator takes no request for a derivative
    return print_module(module)


def check(text: str, inputs: list[Any], target: CpuTargetAttr, folder: Path, *launcher: str) -> None:
    module = parse_module(text)
    (function,) = public_functions(module)
    wanted = expectations(module, function.sym_name.data, inputs, samples=3)
    found = ForeignProgram(text, target, folder, launcher)(*inputs)
    assert len(found) == len(wanted)
    for number, (expected, result) in enumerate(zip(wanted, found, strict=True)):
        difference = compare(expected, result)
        assert difference is None, f"result {number}: {difference}"


@pytest.mark.parametrize("name", X86)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_x86_64(program: KernelProgram, name: str, tmp_path: Path) -> None:
    target = target_named(name)
    needs(target)
    check(text_of(program), program.inputs(), target, tmp_path)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_aarch64(program: KernelProgram, tmp_path: Path) -> None:
    target = target_named("aarch64")
    needs(target, *QEMU)
    check(text_of(program), program.inputs(), target, tmp_path, *QEMU)


@pytest.mark.parametrize("name", ["x86-64", "x86-64-v3"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_valgrind(program: KernelProgram, name: str, tmp_path: Path) -> None:
    target = target_named(name)
    needs(target, VALGRIND[0])
    check(text_of(program), program.inputs(), target, tmp_path, *VALGRIND)


OPS = cast("list[type[NdOp]]", list(Nd.operations))
SAMPLES = [pytest.param(sample, id=f"{op.name}: {sample.name}") for op in OPS for sample in op.samples()]


@pytest.mark.full
@pytest.mark.parametrize("name", ["x86-64-v2", "aarch64", "valgrind"])
@pytest.mark.parametrize("sample", SAMPLES)
def test_samples_of_every_op(sample: Sample, name: str, tmp_path: Path) -> None:
    launcher = {"aarch64": QEMU, "valgrind": VALGRIND}.get(name, ())
    target = target_named("x86-64-v3" if name == "valgrind" else name)
    needs(target, *launcher[:1])
    if any(word in sample.text for word in ("?", "complex", "custom_call")):
        pytest.skip("the runner takes static shapes of real numbers")
    try:
        check(sample.text, list(sample.inputs()), target, tmp_path, *launcher)
    except CallsLibrary:
        pytest.skip("the runner has no library")


READS_BEHIND = """
func.func @f(%x: memref<5xf32>, %y: memref<1xf32>) attributes {gradir.inputs = 1 : i64, gradir.results = 1 : i64} {
  %zero = arith.constant 0 : index
  %five = arith.constant 5 : index
  %v = memref.load %x[%five] : memref<5xf32>
  memref.store %v, %y[%zero] : memref<1xf32>
  return
}"""
WRITES_NOTHING = """
func.func @f(%x: memref<1xf32>, %y: memref<1xf32>) attributes {gradir.inputs = 1 : i64, gradir.results = 1 : i64} {
  return
}"""
WRITES_FAR_BEHIND = READS_BEHIND.replace("constant 5", "constant 16")


@pytest.mark.parametrize(
    ("text", "size", "words"),
    [(READS_BEHIND, 5, "unaddressable|Invalid read|points to uninitialised"), (WRITES_NOTHING, 1, "points to uninitialised byte")],
    ids=["reads behind the end", "writes nothing"],
)
def test_valgrind_sees_what_is_wrong(text: str, size: int, words: str, tmp_path: Path) -> None:
    target = target_named("x86-64")
    needs(target, VALGRIND[0])
    with pytest.raises(AssertionError, match=words):
        ForeignProgram(text, target, tmp_path, VALGRIND)(np.ones(size, np.float32))


@pytest.mark.parametrize("name", ["x86-64", "aarch64"])
def test_an_access_behind_the_end_ends_the_program(name: str, tmp_path: Path) -> None:
    target = target_named(name)
    launcher = QEMU if name == "aarch64" else ()
    needs(target, *launcher)
    with pytest.raises(AssertionError, match="ended with"):
        ForeignProgram(WRITES_FAR_BEHIND, target, tmp_path, launcher)(np.ones(5, np.float32))
