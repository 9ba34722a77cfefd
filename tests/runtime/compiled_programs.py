"""Small compiled modules written by hand as LLVM IR against the ABI: what the runtime is tested with, no compiler involved."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from gradir.runtime.loader import compile_text
from gradir.runtime.manifest import FunctionSpec, KernelRef, Manifest, SourceLine, TensorSpec
from gradir.runtime.module import Module
from gradir.runtime.target import host_target


def tensor(name: str, *shape: int | str | None, dtype: str = "f32") -> TensorSpec:
    return TensorSpec(name, shape, dtype)


def function(name: str, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], arena: int = 0) -> FunctionSpec:
    return FunctionSpec(name, f"{name}.packed", tuple(inputs), tuple(outputs), arena)


def manifest(*functions: FunctionSpec, kernels: Sequence[KernelRef] = (), source_map=None, threads: int | None = 1) -> Manifest:
    return Manifest(tuple(functions), tuple(kernels), host_target(), source_map or {}, {"gradir": "test"}, threads)


compiled = cache(compile_text)

ADD = """
; out[i] = x[i] + y[i], four elements
define i32 @add.packed(ptr %ctx, ptr %args) {
  %x = load ptr, ptr %args
  %y.at = getelementptr i64, ptr %args, i64 1
  %y = load ptr, ptr %y.at
  %o.at = getelementptr i64, ptr %args, i64 2
  %o = load ptr, ptr %o.at
  %a = load <4 x float>, ptr %x, align 4
  %b = load <4 x float>, ptr %y, align 4
  %c = fadd <4 x float> %a, %b
  store <4 x float> %c, ptr %o, align 4
  ret i32 0
}
"""

ADD_SPEC = function("add", [tensor("x", 4), tensor("y", 4)], [tensor("sum", 4)])

DYNAMIC = """
; out[i] = 2 * x[i] for x: f32[n, 3], computed in the arena first and copied to out; also the scalar n * 3
define i32 @twice.packed(ptr %ctx, ptr %args) {
entry:
  %x = load ptr, ptr %args
  %n.at = getelementptr i64, ptr %args, i64 1
  %n = load i64, ptr %n.at
  %o.at = getelementptr i64, ptr %args, i64 2
  %o = load ptr, ptr %o.at
  %c.at = getelementptr i64, ptr %args, i64 4
  %c = load ptr, ptr %c.at
  %count = mul i64 %n, 3
  store i64 %count, ptr %c
  %arena.at = getelementptr i64, ptr %args, i64 5
  %arena = load ptr, ptr %arena.at
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i.next, %body]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %p = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %p
  %w = fadd float %v, %v
  %t = getelementptr float, ptr %arena, i64 %i
  store float %w, ptr %t
  %u = load float, ptr %t
  %q = getelementptr float, ptr %o, i64 %i
  store float %u, ptr %q
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret i32 0
}
"""

DYNAMIC_SPEC = function("twice", [tensor("x", "n", 3)], [tensor("doubled", "n", 3), tensor("count", dtype="i64")], arena=1 << 16)

CHECK = """
; fails with status 1 when x is negative, 2 when it is above 100
define i32 @check.packed(ptr %ctx, ptr %args) {
entry:
  %x.p = load ptr, ptr %args
  %x = load i64, ptr %x.p
  %negative = icmp slt i64 %x, 0
  br i1 %negative, label %bad, label %next
bad:
  %slot.at = getelementptr i8, ptr %ctx, i64 32
  %slot = load ptr, ptr %slot.at
  store i64 3, ptr %slot
  %op = getelementptr i64, ptr %slot, i64 1
  store i64 7, ptr %op
  %operand = getelementptr i64, ptr %slot, i64 2
  store i64 %x, ptr %operand
  ret i32 1
next:
  %large = icmp sgt i64 %x, 100
  br i1 %large, label %memory, label %good
memory:
  ret i32 2
good:
  %o.at = getelementptr i64, ptr %args, i64 1
  %o = load ptr, ptr %o.at
  store i64 %x, ptr %o
  ret i32 0
}
"""

CHECK_SPEC = function("check", [tensor("x", dtype="i64")], [tensor("same", dtype="i64")])

PARALLEL = """
; out[i] = i + number of the thread's nested element sum, through the context's parallel_for, two levels deep
define internal void @inner(ptr %ctx, ptr %total, i64 %lo, i64 %hi) {
  %n = sub i64 %hi, %lo
  %x = atomicrmw add ptr %total, i64 %n seq_cst
  ret void
}
define internal void @outer(ptr %ctx, ptr %o, i64 %lo, i64 %hi) {
entry:
  %total = alloca i64
  %par.at = getelementptr i8, ptr %ctx, i64 8
  %par = load ptr, ptr %par.at
  br label %loop
loop:
  %i = phi i64 [%lo, %entry], [%i.next, %body]
  %more = icmp slt i64 %i, %hi
  br i1 %more, label %body, label %done
body:
  store i64 0, ptr %total
  call void %par(ptr %ctx, ptr @inner, ptr %total, i64 10, i64 1)
  %t = load i64, ptr %total
  %v = add i64 %t, %i
  %q = getelementptr i64, ptr %o, i64 %i
  %old = load i64, ptr %q
  %new = add i64 %old, %v
  store i64 %new, ptr %q
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret void
}
define i32 @rows.packed(ptr %ctx, ptr %args) {
  %x = load ptr, ptr %args
  %o.at = getelementptr i64, ptr %args, i64 1
  %o = load ptr, ptr %o.at
  call void @llvm.memcpy.p0.p0.i64(ptr %o, ptr %x, i64 8000, i1 false)
  %par.at = getelementptr i8, ptr %ctx, i64 8
  %par = load ptr, ptr %par.at
  call void %par(ptr %ctx, ptr @outer, ptr %o, i64 1000, i64 3)
  ret i32 0
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

PARALLEL_SPEC = function("rows", [tensor("x", 1000, dtype="i64")], [tensor("out", 1000, dtype="i64")])

HOST = """
; out = kernel1(kernel0(x)): kernels of other objects, through the table
@gradir.kernels = global [2 x ptr] zeroinitializer
define i32 @chain.packed(ptr %ctx, ptr %args) {
  %x = load ptr, ptr %args
  %o.at = getelementptr i64, ptr %args, i64 1
  %o = load ptr, ptr %o.at
  %k0 = load ptr, ptr @gradir.kernels
  call void %k0(ptr %ctx, ptr %x, ptr %o)
  %k1.at = getelementptr ptr, ptr @gradir.kernels, i64 1
  %k1 = load ptr, ptr %k1.at
  call void %k1(ptr %ctx, ptr %o, ptr %o)
  ret i32 0
}
"""

KERNELS = """
define void @plus_one(ptr %ctx, ptr %x, ptr %o) {
  %v = load float, ptr %x
  %w = fadd float %v, 1.0
  store float %w, ptr %o
  ret void
}
define void @times_three(ptr %ctx, ptr %x, ptr %o) {
  %v = load float, ptr %x
  %w = fmul float %v, 3.0
  store float %w, ptr %o
  ret void
}
"""

HOST_SPEC = function("chain", [tensor("x")], [tensor("y")])

ALLOCATE = """
; out = x, through a block of the context's allocator
define i32 @borrow.packed(ptr %ctx, ptr %args) {
entry:
  %x = load ptr, ptr %args
  %o.at = getelementptr i64, ptr %args, i64 1
  %o = load ptr, ptr %o.at
  %allocate.at = getelementptr i8, ptr %ctx, i64 16
  %allocate = load ptr, ptr %allocate.at
  %bytes = load i64, ptr %x
  %block = call ptr %allocate(ptr %ctx, i64 %bytes, i64 64)
  %none = icmp eq ptr %block, null
  br i1 %none, label %short, label %use
short:
  ret i32 2
use:
  store i64 %bytes, ptr %block
  %v = load i64, ptr %block
  store i64 %v, ptr %o
  %free.at = getelementptr i8, ptr %ctx, i64 24
  %free = load ptr, ptr %free.at
  call void %free(ptr %ctx, ptr %block)
  ret i32 0
}
"""

ALLOCATE_SPEC = function("borrow", [tensor("bytes", dtype="i64")], [tensor("same", dtype="i64")])


def module(text: str, spec: FunctionSpec, **options) -> Module:
    return Module(manifest(spec, **options), [compiled(text)])


def add() -> Module:
    return module(ADD, ADD_SPEC)


def twice() -> Module:
    return module(DYNAMIC, DYNAMIC_SPEC)


def check() -> Module:
    lines = {7: SourceLine("cf.assert", "@model", "model.py:12:4", "x must not be negative")}
    return module(CHECK, CHECK_SPEC, source_map=lines)


def rows(threads: int) -> Module:
    return module(PARALLEL, PARALLEL_SPEC, threads=threads)


def chain() -> Module:
    kernels = (KernelRef("plus_one", 1), KernelRef("times_three", 1))
    return Module(manifest(HOST_SPEC, kernels=kernels), [compiled(HOST), compiled(KERNELS)])
