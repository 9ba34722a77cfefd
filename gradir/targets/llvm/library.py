"""Calls of declared kernels (`gradir.library`) as `ctx->callback(ctx, id, buffers)`; the buffers are described on the stack.

The layout of a buffer is `gradir.runtime.abi`'s: pointer, element type, rank, pointer to sizes, pointer to strides in elements.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute

from gradir.dialects.kernel import ELEMENTS_ATTRIBUTE, LIBRARY_ATTRIBUTE
from gradir.dialects.target import abi
from gradir.dialects.upstream.func import FuncOp
from gradir.targets.llvm.emitter import Buffer, FunctionEmitter, Index
from gradir.targets.llvm.memory import context_field


def is_library(function: FuncOp | None) -> bool:
    """Whether calls of the function are callbacks."""
    return function is not None and LIBRARY_ATTRIBUTE in function.attributes and not function.body.blocks


def call_library(e: FunctionEmitter, op: Any, function: FuncOp) -> None:
    """Describe the operands, call back; a status other than 0 is noted in the error slot and ends this function with STATUS_CALLBACK."""
    buffers = [e.buffer(value) for value in op.operands]
    elements = [str(element) for element in cast("ArrayAttr[Attribute]", function.attributes[ELEMENTS_ATTRIBUTE]).data]
    ranks = [len(buffer.sizes) for buffer in buffers]
    words = abi.BUFFER_WORDS * len(buffers) + 2 * sum(ranks)
    block = e.stack_slot(f"[{max(1, words)} x i64], align 16")
    free = abi.BUFFER_WORDS * len(buffers)
    for position, (buffer, element) in enumerate(zip(buffers, elements)):
        first = abi.BUFFER_WORDS * position
        rank = len(buffer.sizes)
        _store(e, block, first, "ptr", buffer.pointer)
        _store(e, block, first + 1, "i64", abi.ELEMENT_CODES[element])
        _store(e, block, first + 2, "i64", rank)
        _store(e, block, first + 3, "ptr", _word(e, block, free))
        _store(e, block, first + 4, "ptr", _word(e, block, free + rank))
        _describe(e, block, free, buffer)
        free += 2 * rank
    number = e.module.library_id(function)
    callback = context_field(e, abi.OFFSET_CALLBACK)
    status = e.define(f"call i32 {callback}(ptr %ctx, i64 {number}, ptr {block})")
    op_id = e.module.op_id(op, f"@{cast('Any', function.attributes[LIBRARY_ATTRIBUTE]).data}", "nd.custom_call")
    k = e.fresh()
    e.line(f"br i1 {e.define(f'icmp eq i32 {status}, 0')}, label %ok{k}, label %bad{k}, !prof !1")
    mark = e.enter()
    e.start(f"bad{k}")
    slot = context_field(e, abi.OFFSET_ERROR)
    e.line(f"store i64 {abi.STATUS_CALLBACK}, ptr {slot}, align 8")
    e.line(f"store i64 {op_id}, ptr {e.pure(f'getelementptr inbounds i8, ptr {slot}, i64 8')}, align 8")
    wide = e.define(f"sext i32 {status} to i64")
    e.line(f"store i64 {wide}, ptr {e.pure(f'getelementptr inbounds i8, ptr {slot}, i64 16')}, align 8")
    e.fail(str(abi.STATUS_CALLBACK))
    e.leave(mark)
    e.start(f"ok{k}")


def _describe(e: FunctionEmitter, block: str, at: int, buffer: Buffer) -> None:
    for k, size in enumerate(buffer.sizes):
        _store(e, block, at + k, "i64", size)
    for k, stride in enumerate(buffer.strides):
        _store(e, block, at + len(buffer.sizes) + k, "i64", stride)


def _word(e: FunctionEmitter, block: str, at: int) -> str:
    return e.pure(f"getelementptr inbounds i64, ptr {block}, i64 {at}")


def _store(e: FunctionEmitter, block: str, at: int, kind: str, value: Index) -> None:
    e.line(f"store {kind} {value}, ptr {_word(e, block, at)}, align 8")
