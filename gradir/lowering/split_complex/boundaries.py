"""Functions, calls, loops and branches: one complex operand, result or argument becomes two real ones.

A public function keeps one argument and one result per complex value: pairs of numbers along a new last axis, which is how arrays of
complex numbers lie in memory. Everything inside of the module passes two tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.nd.shape import TO_END
from gradir.dialects.types import element_of, i64_array, real_of, shape_of, tensor
from gradir.dialects.upstream.func import CallOp, FuncOp
from gradir.ir.checks import is_entry
from gradir.lowering.split_complex.parts import Pair, Parts, is_complex_type, real_type


def packed_type(kind: Attribute) -> Attribute:
    """`tensor<[..]x2xf32>` of `tensor<[..]xcomplex<f32>>`; other types are their own."""
    return tensor(real_of(element_of(kind)), (*shape_of(kind), 2)) if is_complex_type(kind) else kind


def split_types(kinds: Sequence[Attribute]) -> list[Attribute]:
    """Two real types in place of each complex one."""
    return [real_type(kind) for kind in kinds for _ in range(2 if is_complex_type(kind) else 1)]


def unpack(parts: Parts, packed: SSAValue) -> Pair:
    """The parts of `[..]x2`."""
    shape = shape_of(packed)
    rank, kept = len(shape) - 1, shape[:-1]

    def part(k: int) -> SSAValue:
        limits = [n if isinstance(n, int) else TO_END for n in kept]
        one = parts.emit(nd.SliceOp.make(packed, [0] * rank + [k], [*limits, k + 1]))
        return parts.emit(nd.ReshapeOp.make(one, kept))

    return part(0), part(1)


def pack(parts: Parts, pair: Pair) -> SSAValue:
    """`[..]x2`"""
    columns = [parts.emit(nd.ReshapeOp.make(part, (*shape_of(part), 1))) for part in pair]
    return parts.emit(nd.ConcatenateOp.make(columns, len(shape_of(pair[0]))))


def split_operands(parts: Parts, values: Sequence[SSAValue]) -> list[SSAValue]:
    """Both parts of each complex value."""
    return [part for value in values for part in (parts.pairs.get(value) or (value,))]


def packed_operands(parts: Parts, values: Sequence[SSAValue]) -> list[SSAValue]:
    """Each complex value as one tensor of pairs."""
    return [pack(parts, parts.pairs[value]) if value in parts.pairs else value for value in values]


def joined(results: Sequence[SSAValue], kinds: Sequence[Attribute]) -> list[SSAValue | Pair]:
    """Split results, put together by the types that they had."""
    rest = iter(results)
    return [(next(rest), next(rest)) if is_complex_type(kind) else next(rest) for kind in kinds]


def split_op(parts: Parts, op: Operation) -> Sequence[SSAValue | Pair]:
    """Control flow and terminators: the op itself with more operands, results and, inside, more arguments."""
    regions = [op.detach_region(region) for region in list(op.regions)]
    kinds = [result.type for result in op.results]
    made = parts.builder.op(type(op), split_operands(parts, op.operands), split_types(kinds), op.properties, regions, op.attributes)
    return joined(made.results, kinds)


def call(parts: Parts, op: CallOp, functions: Mapping[str, FuncOp]) -> Sequence[SSAValue | Pair]:
    """A call of a private function passes parts, one of a public function pairs along a last axis."""
    callee = functions.get(op.callee.string_value())
    kinds = [result.type for result in op.results]
    if callee is None or not is_entry(callee):
        return split_op(parts, op)
    operands = packed_operands(parts, op.operands)
    made = parts.builder.op(type(op), operands, list(map(packed_type, kinds)), op.properties, (), op.attributes)
    return [unpack(parts, result) if is_complex_type(kind) else result for result, kind in zip(made.results, kinds)]


def custom_call(parts: Parts, op: nd.CustomCallOp) -> Sequence[SSAValue | Pair]:
    """A library function gets and gives pairs along a last axis; which of its operands and results are complex is noted on the call."""
    kinds = [result.type for result in op.results]
    properties = dict(op.properties)
    for name, types in (("complex_operands", [v.type for v in op.operands]), ("complex_results", kinds)):
        if positions := [k for k, kind in enumerate(types) if is_complex_type(kind)]:
            properties[name] = i64_array(positions)
    operands = packed_operands(parts, op.operands)
    made = parts.builder.op(type(op), operands, list(map(packed_type, kinds)), properties, (), op.attributes)
    return [unpack(parts, result) if is_complex_type(kind) else result for result, kind in zip(made.results, kinds)]


def split_arguments(parts: Parts, block: Block) -> list[SSAValue]:
    """Two real arguments in front of each complex one of the block; the old ones, to be erased when nothing uses them any more."""
    old = [argument for argument in block.args if is_complex_type(argument.type)]
    for argument in old:
        if argument in parts.pairs:  # by the rule of the op around it
            continue
        made: list[SSAValue] = []
        for _ in range(2):
            part = block.insert_arg(real_type(argument.type), argument.index)
            part.location = argument.location
            made.append(part)
        pair = parts.pairs[argument] = (made[0], made[1])
        name_parts(pair, argument.name_hint)
    return list(old)


def packed_arguments(parts: Parts, block: Block) -> list[SSAValue]:
    """One argument of pairs in front of each complex one of a public function; the old ones."""
    old = [argument for argument in block.args if is_complex_type(argument.type)]
    for argument in old:
        packed = block.insert_arg(packed_type(argument.type), argument.index)
        packed.location, packed.name_hint = argument.location, argument.name_hint
        pair = parts.pairs[argument] = unpack(parts, packed)
        name_parts(pair, argument.name_hint)
    return list(old)


def name_parts(pair: Pair, name: str | None) -> None:
    """`name_re`, `name_im`, unless they have names."""
    for part, suffix in zip(pair, ("re", "im")):
        part.name_hint = part.name_hint or (f"{name}_{suffix}" if name else None)


def function_type(function: FuncOp) -> FunctionType:
    """The type of the function after the pass."""
    before = function.function_type
    if is_entry(function):
        return FunctionType.from_lists(list(map(packed_type, before.inputs.data)), list(map(packed_type, before.outputs.data)))
    return FunctionType.from_lists(split_types(before.inputs.data), split_types(before.outputs.data))
