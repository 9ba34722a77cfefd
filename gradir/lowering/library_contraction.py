"""A contraction kernel by a vendor's library: a call of `blas.contract`, and a kernel of its own for what follows the contraction.

Level 2, after outlining and before scheduling, because it changes how many kernels and buffers there are. Whether that pays is for the
tuner to measure: it asks for it by kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    Float32Type,
    Float64Type,
    FloatAttr,
    FunctionType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from gradir.dialects.custom_calls import config_attribute
from gradir.dialects.kernel import (
    CONFIG_ATTRIBUTE,
    DESTINATIONS_ATTRIBUTE,
    ELEMENTS_ATTRIBUTE,
    KERNEL_ATTRIBUTE,
    KINDS,
    LIBRARY_ATTRIBUTE,
    REASON_ATTRIBUTE,
    LibraryAttr,
)
from gradir.dialects.types import i64_attr, shape_of
from gradir.dialects.upstream import arith, func, linalg, tensor
from gradir.lowering.groups import group_of_kernel
from gradir.lowering.kernel_plan import fill_of

NAME = "blas.contract"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def library_form(kernel: func.FuncOp) -> str | None:
    """The contraction of a level-2 kernel as `ab,bc->ac`; None where a library does not compute it.

    It takes static f32 or f64 matrices, every dimension read as it is (no windows), sums from 0, and nothing but elementwise ops after.
    """
    group = group_of_kernel(kernel)
    if group is None or group.contraction is None:
        return None
    core = group.ops[group.contraction.index].op
    fill = fill_of(core)
    if fill is None or not _is_zero(fill.operands[0]) or len(core.operands) != 3:
        return None
    kinds = [value.type for value in core.operands]
    if not all(isinstance(kind, TensorType) and isinstance(kind.element_type, Float32Type | Float64Type) for kind in kinds):
        return None
    tensors = cast("list[TensorType[Any]]", kinds)
    if len({kind.element_type for kind in tensors}) != 1 or any(not isinstance(n, int) for kind in tensors for n in shape_of(kind)):
        return None
    if not all(isinstance(value, BlockArgument) for value in core.operands[:2]) or not _multiplies(core):
        return None
    if len(group.ops) > 1 and core.results[0] in cast("Operation", kernel.body.block.last_op).operands:
        return None
    texts = [_text(m.data) for m in core.indexing_maps.data]
    return None if None in texts else f"{texts[0]},{texts[1]}->{texts[2]}"


def call_library(module: ModuleOp, kernel: func.FuncOp, spec: str, threads: int, reason: str) -> list[func.FuncOp]:
    """Let every call of `kernel` call the library instead, and a new kernel for the rest; the kernel is removed. The functions made."""
    group = group_of_kernel(kernel)
    assert group is not None and group.contraction is not None
    core = group.ops[group.contraction.index].op
    top = module.body.block
    name = kernel.sym_name.data
    operands = [cast("BlockArgument", value).index for value in core.operands[:2]]
    declared = _declaration(f"{name}_blas", [value.type for value in core.operands], spec, threads, reason)
    top.insert_op_before(declared, kernel)
    made = [declared]
    rest = _rest(kernel, core, f"{name}_rest") if len(group.ops) > 1 else None
    if rest is not None:
        top.insert_op_before(rest, kernel)
        made.append(rest)
    for call in [op for op in module.walk() if isinstance(op, func.CallOp) and op.callee.string_value() == name]:
        _turn(call, core, operands, declared, rest)
    kernel.detach()
    kernel.erase()
    return made


def _turn(call: func.CallOp, core: linalg.GenericOp, operands: Sequence[int], declared: func.FuncOp, rest: func.FuncOp | None) -> None:
    parent = call.parent
    assert parent is not None
    inputs = [call.operands[k] for k in operands]
    kind = core.results[0].type
    if rest is None:
        destination: SSAValue = call.operands[len(call.operands) - 1]
    else:
        empty = tensor.EmptyOp.create(operands=[], result_types=[kind], location=call.location)
        parent.insert_op_before(empty, call)
        destination = empty.results[0]
    product = _call(declared, [*inputs, destination], [kind], call)
    parent.insert_op_before(product, call)
    if rest is None:
        results: Sequence[SSAValue] = product.results
    else:
        count = len(call.results)
        first = len(call.operands) - count
        arguments = [*call.operands[:first], product.results[0], *call.operands[first:]]
        after = _call(rest, arguments, [r.type for r in call.results], call)
        parent.insert_op_before(after, call)
        results = after.results
    for old, new in zip(call.results, results):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    call.detach()
    call.erase()


def _call(function: func.FuncOp, operands: Sequence[SSAValue], results: Sequence[Attribute], like: Operation) -> func.CallOp:
    return func.CallOp.create(
        operands=list(operands),
        result_types=list(results),
        properties={"callee": SymbolRefAttr(function.sym_name.data)},
        location=like.location,
    )


def _declaration(name: str, kinds: Sequence[Attribute], spec: str, threads: int, reason: str) -> func.FuncOp:
    attributes: dict[str, Attribute] = {
        KERNEL_ATTRIBUTE: LibraryAttr(),
        LIBRARY_ATTRIBUTE: StringAttr(NAME),
        ELEMENTS_ATTRIBUTE: ArrayAttr([cast("TensorType[Any]", kind).element_type for kind in kinds]),
        DESTINATIONS_ATTRIBUTE: i64_attr(1),
        CONFIG_ATTRIBUTE: config_attribute({"spec": spec, "threads": threads}),
        REASON_ATTRIBUTE: StringAttr(reason),
    }
    properties: dict[str, Attribute] = {
        "sym_name": StringAttr(name),
        "function_type": FunctionType.from_lists(list(kinds), [kinds[-1]]),
        "sym_visibility": StringAttr("private"),
    }
    return func.FuncOp.create(properties=properties, attributes=attributes, regions=[Region()])


def _rest(kernel: func.FuncOp, core: linalg.GenericOp, name: str) -> func.FuncOp:
    """The kernel without its contraction, whose result is an argument before the destinations."""
    place = list(kernel.body.block.ops).index(core)
    rest = kernel.clone()
    block: Block = rest.body.block
    found = cast("linalg.GenericOp", list(block.ops)[place])
    count = len(kernel.function_type.outputs.data)
    first = len(block.args) - count
    argument = block.insert_arg(found.results[0].type, first)
    found.results[0].replace_all_uses_with(argument)
    fill = fill_of(found)
    assert fill is not None
    dead: list[Operation] = [found, fill, *(v.owner for v in fill.operands if isinstance(v.owner, Operation))]
    for op in dead:
        if all(result.first_use is None for result in op.results):
            op.detach()
            op.erase()
    kinds = [a.type for a in block.args]
    rest.properties["function_type"] = FunctionType.from_lists(kinds, list(kernel.function_type.outputs.data))
    rest.properties["sym_name"] = StringAttr(name)
    rest.properties.pop("arg_attrs", None)
    rest.attributes.pop(REASON_ATTRIBUTE, None)
    group = group_of_kernel(rest)
    assert group is not None, "what follows a contraction is elementwise"
    rest.attributes[KERNEL_ATTRIBUTE] = KINDS[group.kind].of()
    return rest


def _text(map_: AffineMap) -> str | None:
    if not all(isinstance(e, AffineDimExpr) for e in map_.results):
        return None
    return "".join(_LETTERS[cast("AffineDimExpr", e).position] for e in map_.results)


def _is_zero(value: SSAValue) -> bool:
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, FloatAttr):
        return False
    return cast("FloatAttr[Any]", owner.value).value.data == 0


def _multiplies(core: linalg.GenericOp) -> bool:
    """`acc + x * y` and nothing else."""
    ops = list(core.body.block.ops)
    return [type(op) for op in ops[:-1]] == [arith.MulfOp, arith.AddfOp]


__all__ = ["NAME", "call_library", "library_form"]
