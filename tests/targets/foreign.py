"""Programs for other processors, run by an emulator (or by this one, or by valgrind): object -> static executable -> arrays.

The executable is its own operating-system interface: a few lines of assembly and of LLVM IR that read a job from standard input, call
`@f.packed` with the ABI's context, and write the outputs. Every buffer ends where an unmapped page begins; parallel loops run in two
halves, the second first, so that a loop whose halves depend on each other is seen; under valgrind, outputs, arenas and what the run
allocates begin undefined, and the bytes behind a buffer's last are out of bounds.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp

from gradir.dialects.target import TARGET_ATTRIBUTE, CpuTargetAttr, abi
from gradir.dialects.types import element_of, numpy_dtype
from gradir.dialects.upstream.func import FuncOp
from gradir.driver.lower import lower
from gradir.ir.structure import public_functions
from gradir.ir.text import parse_module
from gradir.targets.code_generation import object_of
from gradir.targets.cpu import compile_object
from gradir.targets.llvm.module import translate

START = {
    "aarch64": """
        .globl _start, system_call, memory_state
        _start: mov x29, #0
                bl run
                mov x8, #93
                svc #0
        system_call: mov x8, x0
                mov x0, x1
                mov x1, x2
                mov x2, x3
                mov x3, x4
                mov x4, x5
                mov x5, x6
                svc #0
                ret
        memory_state: ret
    """,
    "x86_64": """
        .globl _start, system_call, memory_state
        _start: xorl %ebp, %ebp
                andq $-16, %rsp
                call run
                movl %eax, %edi
                movl $60, %eax
                syscall
        system_call: movq %rdi, %rax
                movq %rsi, %rdi
                movq %rdx, %rsi
                movq %rcx, %rdx
                movq %r8, %r10
                movq %r9, %r8
                movq 8(%rsp), %r9
                syscall
                ret
        memory_state: movq %rdi, %rax
                xorl %edx, %edx
                rolq $3, %rdi
                rolq $13, %rdi
                rolq $61, %rdi
                rolq $51, %rdi
                xchgq %rbx, %rbx
                ret
    """,
}
"""`_start`, the system call, and valgrind's client request (no instruction that does anything elsewhere)."""

CALLS = {"aarch64": {"read": 63, "write": 64, "mmap": 222, "munmap": 215}, "x86_64": {"read": 0, "write": 1, "mmap": 9, "munmap": 11}}
NO_ACCESS, UNDEFINED = 0x4D430000, 0x4D430001
SCALAR, INPUT, OUTPUT, SCRATCH = range(4)

RUNNER = f"""
declare i64 @system_call(i64, i64, i64, i64, i64, i64, i64)
declare void @memory_state(ptr)
declare i32 @ENTRY(ptr, ptr)
@context = internal global [9 x i64] zeroinitializer
@error = internal global [6 x i64] zeroinitializer
@word = internal global i64 0

define internal void @state(i64 %kind, ptr %p, i64 %bytes) {{
  %request = alloca [6 x i64]
  store [6 x i64] zeroinitializer, ptr %request
  store i64 %kind, ptr %request
  %first = getelementptr i64, ptr %request, i64 1
  store ptr %p, ptr %first
  %second = getelementptr i64, ptr %request, i64 2
  store i64 %bytes, ptr %second
  call void @memory_state(ptr %request)
  ret void
}}

define internal ptr @buffer(i64 %bytes) {{
  %up = add i64 %bytes, 63
  %whole = and i64 %up, -64
  %paged.up = add i64 %whole, 4095
  %paged = and i64 %paged.up, -4096
  %all = add i64 %paged, 8192
  %base = call i64 @system_call(i64 $mmap, i64 0, i64 %all, i64 3, i64 34, i64 -1, i64 0)
  %behind = add i64 %base, %paged
  %guard = add i64 %behind, 4096
  %gone = call i64 @system_call(i64 $munmap, i64 %guard, i64 4096, i64 0, i64 0, i64 0, i64 0)
  %start = sub i64 %guard, %whole
  %p = inttoptr i64 %start to ptr
  %first = inttoptr i64 %base to ptr
  %before = sub i64 %start, %base
  call void @state(i64 {NO_ACCESS}, ptr %first, i64 %before)
  %end = getelementptr i8, ptr %p, i64 %bytes
  %rest = sub i64 %whole, %bytes
  call void @state(i64 {NO_ACCESS}, ptr %end, i64 %rest)
  call void @state(i64 {UNDEFINED}, ptr %p, i64 %bytes)
  ret ptr %p
}}

define internal void @transfer(i64 %call, i64 %file, ptr %p, i64 %bytes) {{
entry:
  br label %head
head:
  %done = phi i64 [0, %entry], [%next, %body]
  %more = icmp ult i64 %done, %bytes
  br i1 %more, label %body, label %exit
body:
  %at = getelementptr i8, ptr %p, i64 %done
  %address = ptrtoint ptr %at to i64
  %left = sub i64 %bytes, %done
  %moved = call i64 @system_call(i64 %call, i64 %file, i64 %address, i64 %left, i64 0, i64 0, i64 0)
  %next = add i64 %done, %moved
  br label %head
exit:
  ret void
}}

define internal i64 @number() {{
  call void @transfer(i64 $read, i64 0, ptr @word, i64 8)
  %n = load i64, ptr @word
  ret i64 %n
}}

define internal void @parallel(ptr %ctx, ptr %fn, ptr %closure, i64 %n, i64 %grain) {{
  %half = sdiv i64 %n, 2
  %some = icmp sgt i64 %n, %half
  br i1 %some, label %second, label %between
second:
  call void %fn(ptr %ctx, ptr %closure, i64 %half, i64 %n)
  br label %between
between:
  %any = icmp sgt i64 %half, 0
  br i1 %any, label %first, label %exit
first:
  call void %fn(ptr %ctx, ptr %closure, i64 0, i64 %half)
  br label %exit
exit:
  ret void
}}

define internal ptr @allocate(ptr %ctx, i64 %bytes, i64 %align) {{
  %p = call ptr @buffer(i64 %bytes)
  ret ptr %p
}}

define internal void @free(ptr %ctx, ptr %p) {{
  ret void
}}

define i32 @run() {{
entry:
  store i64 {abi.VERSION}, ptr @context
  store ptr @parallel, ptr getelementptr (i8, ptr @context, i64 {abi.OFFSET_PARALLEL_FOR})
  store ptr @allocate, ptr getelementptr (i8, ptr @context, i64 {abi.OFFSET_ALLOCATE})
  store ptr @free, ptr getelementptr (i8, ptr @context, i64 {abi.OFFSET_FREE})
  store ptr @error, ptr getelementptr (i8, ptr @context, i64 {abi.OFFSET_ERROR})
  store i64 2, ptr getelementptr (i8, ptr @context, i64 {abi.OFFSET_THREADS})
  %count = call i64 @number()
  %bytes = mul i64 %count, 8
  %slots = call ptr @buffer(i64 %bytes)
  %kinds = call ptr @buffer(i64 %bytes)
  %sizes = call ptr @buffer(i64 %bytes)
  br label %reading
reading:
  %i = phi i64 [0, %entry], [%i.next, %stored]
  %unread = icmp ult i64 %i, %count
  br i1 %unread, label %read, label %calling
read:
  %kind = call i64 @number()
  %value = call i64 @number()
  %kind.at = getelementptr i64, ptr %kinds, i64 %i
  store i64 %kind, ptr %kind.at
  %size.at = getelementptr i64, ptr %sizes, i64 %i
  store i64 %value, ptr %size.at
  %slot.at = getelementptr i64, ptr %slots, i64 %i
  store i64 %value, ptr %slot.at
  %is.scalar = icmp eq i64 %kind, {SCALAR}
  br i1 %is.scalar, label %stored, label %pointer
pointer:
  %p = call ptr @buffer(i64 %value)
  store ptr %p, ptr %slot.at
  %is.input = icmp eq i64 %kind, {INPUT}
  br i1 %is.input, label %filled, label %stored
filled:
  call void @transfer(i64 $read, i64 0, ptr %p, i64 %value)
  br label %stored
stored:
  %i.next = add i64 %i, 1
  br label %reading
calling:
  %status = call i32 @ENTRY(ptr @context, ptr %slots)
  br label %writing
writing:
  %j = phi i64 [0, %calling], [%j.next, %written]
  %left = icmp ult i64 %j, %count
  br i1 %left, label %look, label %exit
look:
  %k.at = getelementptr i64, ptr %kinds, i64 %j
  %k = load i64, ptr %k.at
  %is.output = icmp eq i64 %k, {OUTPUT}
  br i1 %is.output, label %write, label %written
write:
  %q.at = getelementptr ptr, ptr %slots, i64 %j
  %q = load ptr, ptr %q.at
  %n.at = getelementptr i64, ptr %sizes, i64 %j
  %n = load i64, ptr %n.at
  call void @transfer(i64 $write, i64 1, ptr %q, i64 %n)
  br label %written
written:
  %j.next = add i64 %j, 1
  br label %writing
exit:
  ret i32 %status
}}

define ptr @memcpy(ptr %to, ptr %from, i64 %n) noinline {{
  %r = call ptr @memmove(ptr %to, ptr %from, i64 %n)
  ret ptr %r
}}

define ptr @memmove(ptr %to, ptr %from, i64 %n) noinline {{
entry:
  %a = ptrtoint ptr %to to i64
  %b = ptrtoint ptr %from to i64
  %up = icmp ult i64 %a, %b
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %body, label %exit
body:
  %next = add i64 %i, 1
  %back = sub i64 %n, %next
  %at = select i1 %up, i64 %i, i64 %back
  %source = getelementptr i8, ptr %from, i64 %at
  %target = getelementptr i8, ptr %to, i64 %at
  %byte = load volatile i8, ptr %source
  store volatile i8 %byte, ptr %target
  br label %head
exit:
  ret ptr %to
}}

define ptr @memset(ptr %to, i32 %value, i64 %n) noinline {{
entry:
  %byte = trunc i32 %value to i8
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %body, label %exit
body:
  %next = add i64 %i, 1
  %target = getelementptr i8, ptr %to, i64 %i
  store volatile i8 %byte, ptr %target
  br label %head
exit:
  ret ptr %to
}}
"""


def architecture(target: CpuTargetAttr) -> str:
    """`aarch64` or `x86_64`."""
    return target.triple.partition("-")[0] or "x86_64"


def tools(target: CpuTargetAttr) -> tuple[str, str] | None:
    """Assembler and linker for a target; None where they are not installed."""
    prefix = "aarch64-linux-gnu-" if architecture(target) == "aarch64" else ""
    found = [shutil.which(prefix + name) or shutil.which(f"x86_64-linux-gnu-{name}" if not prefix else "") for name in ("as", "ld")]
    return (found[0], found[1]) if found[0] and found[1] else None


class CallsLibrary(Exception):
    """The program calls functions that the runtime finds by name: the runner has none."""


class ForeignProgram:
    """The public function of a program, compiled and linked for `target` in `folder`; call it with arrays."""

    def __init__(self, text: str, target: CpuTargetAttr, folder: Path, launcher: Sequence[str] = ()) -> None:
        self.launcher = tuple(launcher)
        self.path = folder / "program"
        module = parse_module(text)
        module.attributes[TARGET_ATTRIBUTE] = target
        lower(module)
        (self.function,) = public_functions(module)
        self._link(module, target, folder)

    def _link(self, module: ModuleOp, target: CpuTargetAttr, folder: Path) -> None:
        made = tools(target)
        assert made is not None, "no assembler or no linker for the target"
        name = architecture(target)
        runner = RUNNER.replace("@ENTRY", f'@"{self.function.sym_name.data}.packed"')
        for call, number in CALLS[name].items():
            runner = runner.replace(f"${call}", str(number))
        baseline = "generic" if name == "aarch64" else "x86-64"
        (folder / "runner.o").write_bytes(object_of(runner, target.triple or "x86_64-unknown-linux-gnu", baseline, ""))
        translation = translate(module, target=target)
        if translation.libraries:
            raise CallsLibrary
        (folder / "program.o").write_bytes(compile_object(translation.text, target))
        (folder / "start.s").write_text("\n".join(line.strip() for line in START[name].splitlines()) + "\n")
        subprocess.run([made[0], "-o", folder / "start.o", folder / "start.s"], check=True)
        parts = [folder / part for part in ("start.o", "runner.o", "program.o")]
        subprocess.run([made[1], "-static", "-z", "noexecstack", "-o", self.path, *parts], check=True)

    def __call__(self, *inputs: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
        """The outputs; `AssertionError` with what the run said when it did not end well."""
        job, outputs = _job(self.function, inputs)
        done = subprocess.run([*self.launcher, self.path], input=job, capture_output=True, timeout=300)
        assert done.returncode == 0, f"ended with {done.returncode}:\n{done.stderr.decode(errors='replace')[-4000:]}"
        results: list[np.ndarray[Any, Any]] = []
        at = 0
        for empty in outputs:
            results.append(np.frombuffer(done.stdout, empty.dtype, empty.size, at).reshape(empty.shape))
            at += empty.nbytes
        assert at == len(done.stdout)
        return results


def _job(function: FuncOp, inputs: Sequence[np.ndarray[Any, Any]]) -> tuple[bytes, list[np.ndarray[Any, Any]]]:
    """What the runner reads, and empty arrays like the outputs: the shapes are static."""
    taken = function.attributes["gradir.inputs"].value.data  # type: ignore[attr-defined]
    produced = function.attributes["gradir.results"].value.data  # type: ignore[attr-defined]
    outputs: list[np.ndarray[Any, Any]] = []
    words: list[bytes] = []
    for position, type_ in enumerate(function.function_type.inputs.data):
        assert isinstance(type_, MemRefType), "scalars are rank-0 tensors"
        shape, dtype = type_.get_shape(), numpy_dtype(element_of(type_))
        if position < taken:
            array = np.ascontiguousarray(inputs[position], dtype)
            assert array.shape == shape
            words += [struct.pack("<qq", INPUT, array.nbytes), array.tobytes()]
        else:
            empty = np.empty(shape, dtype)
            words.append(struct.pack("<qq", OUTPUT if position < taken + produced else SCRATCH, empty.nbytes))
            if position < taken + produced:
                outputs.append(empty)
    return struct.pack("<q", len(function.function_type.inputs.data)) + b"".join(words), outputs
