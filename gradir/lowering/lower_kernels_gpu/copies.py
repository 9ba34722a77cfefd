"""Copies between buffers with gaps become kernels: the driver copies what lies in one piece, and would be called once for each piece.

Also what an entry computes outside of kernels: host code cannot, the buffers lie in the device's memory.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StridedLayoutAttr,
    StringAttr,
    SymbolRefAttr,
    i32,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, REASON_ATTRIBUTE, ElementwiseAttr
from gradir.dialects.kernel_invariants import ACCESS
from gradir.dialects.upstream import func, linalg, memref
from gradir.ir.builder import new_function


def outline_copies(module: ModuleOp) -> None:
    """Give every copy with gaps, and every loop nest outside of kernels, a kernel; equal ones share it."""
    names: dict[Any, str] = {}
    block = module.body.block
    taken = {function.sym_name.data for function in block.ops if isinstance(function, func.FuncOp)}
    for function in list(block.ops):
        if not isinstance(function, func.FuncOp) or function.is_declaration or KERNEL_ATTRIBUTE in function.attributes:
            continue
        for op in list(function.walk()):
            if isinstance(op, memref.CopyOp) and _has_gaps(op):
                kinds = tuple(cast("MemRefType[Any]", value.type) for value in op.operands)
                if kinds not in names:
                    names[kinds] = _fresh("copy", taken)
                    block.insert_op_before(_copy_kernel(names[kinds], kinds[0], kinds[1], op), function)
                _call(op, names[kinds], op.operands)
            elif isinstance(op, linalg.GenericOp | linalg.FillOp) and not _inside_nest(op):
                name = _fresh("nest", taken)
                block.insert_op_before(_nest_kernel(name, op), function)
                _call(op, name, op.operands)


def _fresh(base: str, taken: set[str]) -> str:
    number = 0
    while f"{base}_{number}" in taken:
        number += 1
    taken.add(f"{base}_{number}")
    return f"{base}_{number}"


def _has_gaps(op: memref.CopyOp) -> bool:
    """Whether one side is not known to lie in one piece."""
    return not all(_in_one_piece(cast("MemRefType[Any]", value.type)) for value in op.operands)


def _in_one_piece(kind: MemRefType[Any]) -> bool:
    if isinstance(kind.layout, NoneAttr):
        return True
    if not isinstance(kind.layout, StridedLayoutAttr):
        return False
    step = 1
    for size, stride in zip(reversed(kind.get_shape()), reversed(kind.layout.strides.data), strict=True):
        if size != 1 and getattr(stride, "data", None) != step:
            return False
        step *= size  # a dynamic size is -1: no stride equals what follows
    return True


def _inside_nest(op: Operation) -> bool:
    return any(isinstance(parent, linalg.GenericOp) for parent in _parents(op))


def _parents(op: Operation) -> list[Operation]:
    found: list[Operation] = []
    at = op.parent_op()
    while at is not None:
        found.append(at)
        at = at.parent_op()
    return found


def _call(op: Operation, name: str, operands: Any) -> None:
    parent = op.parent
    assert parent is not None
    new = func.CallOp.create(operands=list(operands), properties={"callee": SymbolRefAttr(name)}, location=op.location)
    parent.insert_op_before(new, op)
    op.detach()
    op.drop_all_references()


def _kernel(name: str, block: Block, access: list[str], op: Operation, reason: str) -> func.FuncOp:
    block.add_op(func.ReturnOp.create(location=op.location))
    attributes = {KERNEL_ATTRIBUTE: ElementwiseAttr.of(), REASON_ATTRIBUTE: StringAttr(reason)}
    made = new_function(name, block, [], private=True, attributes=attributes, loc=op.location)
    made.properties["arg_attrs"] = ArrayAttr([DictionaryAttr({ACCESS: StringAttr(word)} if word else {}) for word in access])
    return made


def _copy_kernel(name: str, source: MemRefType[Any], target: MemRefType[Any], op: Operation) -> func.FuncOp:
    element = source.element_type
    rank = len(source.get_shape())
    body = Block(arg_types=[element, element])
    body.add_op(linalg.YieldOp.create(operands=[body.args[0]], location=op.location))
    block = Block(arg_types=[source, target])
    same = AffineMapAttr(AffineMap.identity(rank))
    parallel = linalg.IteratorTypeAttr(linalg.IteratorType.PARALLEL)
    nest = linalg.GenericOp.create(
        operands=list(block.args),
        properties={
            "indexing_maps": ArrayAttr([same, same]),
            "iterator_types": ArrayAttr([parallel] * rank),
            "operandSegmentSizes": DenseArrayBase.from_list(i32, [1, 1]),
        },
        regions=[Region(body)],
        location=op.location,
    )
    block.add_op(nest)
    return _kernel(name, block, ["read", "write"], op, "a copy with gaps")


def _nest_kernel(name: str, op: Operation) -> func.FuncOp:
    """The op alone, on the kernel's arguments."""
    block = Block(arg_types=[value.type for value in op.operands])
    values: dict[SSAValue, SSAValue] = dict(zip(op.operands, block.args))
    block.add_op(op.clone(values))
    first = len(op.operands) - len(cast("Any", op).outputs)
    access = [("read" if k < first else "readwrite") if isinstance(value.type, MemRefType) else "" for k, value in enumerate(op.operands)]
    return _kernel(name, block, access, op, "outside of kernels")
