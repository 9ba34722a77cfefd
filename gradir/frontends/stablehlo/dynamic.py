"""Sizes that are known only when the program runs: names for the sizes of arguments, and the ops that take a shape as an operand.

A module with `?` in its functions is converted with a `Dynamic` state. Arguments of public functions get named sizes (JAX's names where it
wrote them), calls are inlined, every value carries the sizes that follow from its op (`gradir.size_algebra`), and shape operands are read
off `symbolic`. A shape that does not follow from sizes of arguments is bound when the program runs (`nd.bind`). Where two sizes have to
be equal and are not the same text, the program asserts it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IndexType, IntegerAttr, StringAttr, SymbolRefAttr, TensorType, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue

from gradir import size_algebra
from gradir.dialects import nd
from gradir.dialects.nd.shape import TO_END
from gradir.dialects.size_limits import Limits
from gradir.dialects.types import Dim, Shape, element_of, is_static, rank_of, shape_of, static_shape, tensor
from gradir.dialects.upstream import arith, tensor as upstream_tensor
from gradir.dialects.upstream.func import CallOp, FuncOp
from gradir.frontends.stablehlo.conversion import Conversion, Rule, UnsupportedError, Values, broadcast, position_of
from gradir.frontends.stablehlo.dialect import attribute, number, numbers
from gradir.frontends.stablehlo.symbolic import Comparison, Symbolic

_INDEX = IndexType()


@dataclass
class Dynamic:
    """What the conversion of a module with run-time sizes remembers beside the values."""

    symbolic: Symbolic
    entry: Mapping[SSAValue, Shape] = field(default_factory=dict[SSAValue, Shape])
    """Named shapes of the arguments of the public function that is being converted."""
    bound: int = 0


def is_dynamic(functions: Sequence[FuncOp]) -> bool:
    """Whether some function takes or gives tensors of run-time size."""
    types = {kind for f in functions for kind in (*f.function_type.inputs, *f.function_type.outputs)}
    return any(isinstance(kind, TensorType) and not is_static(cast("TensorType[Any]", kind)) for kind in types)


def named_arguments(function: FuncOp, functions: Mapping[str, FuncOp]) -> dict[SSAValue, Shape]:
    """Shapes of the arguments of a public function with a name for each `?`.

    Equal names where the function asserts equal sizes; the names that JAX gives to arguments of the function that this one calls.
    """
    shapes: dict[SSAValue, Shape] = {}
    for k, argument in enumerate(function.body.block.args):
        if isinstance(argument.type, TensorType):
            stem = argument.name_hint or f"arg{k}"
            shapes[argument] = tuple(n if isinstance(n, int) else f"{stem}_{d}" for d, n in enumerate(shape_of(argument)))
    state = Symbolic(lambda value: shapes.get(value, (None,) * rank_of(value)))
    names: dict[str, Dim] = {}
    for op in function.body.block.ops:
        if op.name == "stablehlo.custom_call" and op.operands and (held := state.of(op.operands[0])) is not None:
            _equate(held[0], names, state)
        if isinstance(op, CallOp):
            _take_names(op, functions, names, state)
        state.follow(op)
    taken: dict[SSAValue, Shape] = {}
    for argument, shape in shapes.items():
        renamed = shape
        for _ in range(3):  # a name of a name
            renamed = tuple(size_algebra.rename(n, names) for n in renamed)
        taken[argument] = renamed
    return taken


def _equate(held: object, names: dict[str, Dim], state: Symbolic) -> None:
    """An assertion `a == b`: the name a stands for b."""
    if not isinstance(held, Comparison) or held.direction != "EQ":
        return
    for name, other in ((held.left, held.right), (held.right, held.left)):
        if isinstance(name, str) and size_algebra.is_name(name) and name not in names and name not in size_algebra.names_in(other):
            names[name] = other
            return


def _take_names(op: CallOp, functions: Mapping[str, FuncOp], names: dict[str, Dim], state: Symbolic) -> None:
    """Arguments that JAX calls `b` (`jax.global_constant`) give their size that name."""
    callee = functions.get(op.callee.string_value())
    rows = callee.arg_attrs if callee is not None else None
    if not isinstance(rows, ArrayAttr):
        return
    for value, row in zip(op.operands, rows.data):
        given = row.data.get("jax.global_constant") if isinstance(cast("Attribute", row), DictionaryAttr) else None
        held = state.of(value)
        if isinstance(given, StringAttr) and given.data and held is not None and isinstance(held[0], str):
            size = held[0]
            if size_algebra.is_name(size) and size not in names and size != given.data:
                names[size] = given.data


# -- around each op


def before(conversion: Conversion, op: Operation) -> None:
    """Operands of elementwise ops get one shape: the program asserts that sizes which it calls differently are equal."""
    assert conversion.dynamic is not None
    if op.name not in conversion.elementwise or len(op.operands) < 2:
        return
    values = [conversion.values[value] for value in op.operands]
    ranked = [value for value in values if isinstance(value.type, TensorType) and rank_of(value)]
    if len({shape_of(value) for value in ranked}) < 2:
        return
    model = ranked[0]
    for old, value in zip(op.operands, values):
        if value in ranked and shape_of(value) != shape_of(model) and rank_of(value) == rank_of(model):
            conversion.values[old] = retyped(conversion, value, shape_of(model))


def retyped(conversion: Conversion, value: SSAValue, shape: Shape) -> SSAValue:
    """The value with other texts for its sizes, after an assertion that they are the same numbers."""
    if shape_of(value) == shape:
        return value
    for d, (have, want) in enumerate(zip(shape_of(value), shape)):
        if have != want:
            _assert_equal(conversion, have, want, f"dimension {d}: sizes {have} and {want} are equal")
    starts = [conversion.constant(0, tensor(i64, ())) for _ in shape]
    return conversion.emit(nd.DynamicSliceOp.make(value, starts, shape))


def _assert_equal(conversion: Conversion, a: Dim, b: Dim, message: str) -> None:
    if isinstance(a, int) and isinstance(b, int):
        raise UnsupportedError(message.replace("are equal", "have to be equal"))
    equal = conversion.builder(arith.CmpiOp, [conversion.size(a), conversion.size(b)], [i1], {"predicate": arith.integer_predicate("eq")})
    conversion.builder.op(nd.AssertOp, [equal], [], {"message": StringAttr(message)})


def check_result(conversion: Conversion, found: SSAValue, kind: Attribute) -> SSAValue:
    """A result whose sizes agree with what the text says of it: `?` takes any."""
    if not isinstance(kind, TensorType) or not isinstance(found.type, TensorType) or found.type == kind:
        return found
    have, want = shape_of(found), shape_of(cast("Attribute", kind))
    same = element_of(found) == element_of(cast("Attribute", kind)) and len(have) == len(want)
    if not same or any(isinstance(n, int) and isinstance(m, int) and n != m for n, m in zip(have, want)):
        raise UnsupportedError(f"the result has type {kind}, its counterpart {found.type}")
    shape = tuple(m if isinstance(m, int) else n for n, m in zip(have, want))
    return retyped(conversion, found, shape)


def shape_operand(conversion: Conversion, value: SSAValue, kind: Attribute) -> list[Dim]:
    """The sizes that a shape operand holds: numbers, texts of names, or new names bound to what it holds at run time."""
    dynamic = conversion.dynamic
    sizes: list[Dim] = dynamic.symbolic.sizes(value) if dynamic is not None else [None] * static_shape(value)[0]
    wanted = shape_of(kind)
    found: list[Dim] = []
    for k, (size, want) in enumerate(zip(sizes, wanted, strict=True)):
        if isinstance(want, int):
            found.append(want)
        else:
            found.append(size if size is not None else _bind(conversion, conversion.values[value], k))
    return found


def _bind(conversion: Conversion, shape: SSAValue, position: int) -> str:
    """A new name for an element of a tensor of sizes."""
    dynamic = conversion.dynamic
    if dynamic is None:
        dynamic = conversion.dynamic = Dynamic(Symbolic(lambda old: shape_of(conversion.values[old])))
    builder = conversion.builder
    at = [builder(arith.ConstantOp, [], [_INDEX], {"value": IntegerAttr(position, _INDEX)})] if rank_of(shape) else []
    element = builder(upstream_tensor.ExtractOp, [shape, *at], [element_of(shape)])
    name = f"size{dynamic.bound}"
    dynamic.bound += 1
    builder.op(nd.BindOp, [builder(arith.IndexCastOp, [element], [_INDEX])], [], {"sym": StringAttr(name)})
    return name


# -- rules


def get_dimension_size(conversion: Conversion, op: Operation) -> Values:
    """The size of a dimension, as i32."""
    (operand,) = conversion.operands(op)
    kind = op.results[0].type
    size = shape_of(operand)[number(op, "dimension")]
    if isinstance(size, int):
        return [conversion.constant(size, kind)]
    builder = conversion.builder
    value = conversion.size(size) if size is not None else conversion.emit(nd.DimOp.make(operand, number(op, "dimension")))
    scalar = builder(arith.IndexCastOp, [value], [element_of(kind)])
    return [builder(upstream_tensor.FromElementsOp, [scalar], [kind])]


def dynamic_reshape(conversion: Conversion, op: Operation) -> Values:
    """The same elements in the shape that the operand holds."""
    operand = conversion.values[op.operands[0]]
    shape = shape_operand(conversion, op.operands[1], op.results[0].type)
    before, after = size_algebra.product(shape_of(operand)), size_algebra.product(shape)
    if not size_algebra.same_count(before, after):
        flat = conversion.emit(nd.ReshapeOp.make(operand, [before]))
        operand = retyped(conversion, flat, (after,))
    return [operand if shape_of(operand) == tuple(shape) else conversion.emit(nd.ReshapeOp.make(operand, shape))]


def dynamic_broadcast_in_dim(conversion: Conversion, op: Operation) -> Values:
    """Operand dim k becomes result dim broadcast_dimensions[k]; sizes of 1 stretch."""
    operand = conversion.values[op.operands[0]]
    dims = numbers(op, "broadcast_dimensions") or ()
    shape = tuple(shape_operand(conversion, op.operands[1], op.results[0].type))
    wanted = tuple(n if n == 1 else shape[d] for n, d in zip(shape_of(operand), dims))
    return [broadcast(conversion, retyped(conversion, operand, wanted), dims, shape)]


def dynamic_iota(conversion: Conversion, op: Operation) -> Values:
    """Positions along one dimension of the shape that the operand holds."""
    kind = tensor(element_of(op.results[0]), shape_operand(conversion, op.operands[0], op.results[0].type))
    sizes = [conversion.size(n) for n in shape_of(kind) if not isinstance(n, int)]
    return [conversion.emit(nd.IotaOp.make(kind, number(op, "iota_dimension"), sizes))]


def dynamic_pad(conversion: Conversion, op: Operation) -> Values:
    """Padding by run-time numbers: edges at least 0, nothing between elements; numbers that are known may be any."""
    assert conversion.dynamic is not None
    operand, value = (conversion.values[v] for v in op.operands[:2])
    low, high, interior = (conversion.dynamic.symbolic.sizes(v) for v in op.operands[2:])
    known = [[n for n in part if isinstance(n, int)] for part in (low, high, interior)]
    if all(len(part) == rank_of(operand) for part in known):
        return [conversion.emit(nd.PadOp.make(operand, value, *known))]
    bounds = [conversion.dynamic.symbolic.bounds(n)[0] if n is not None else -1 for n in (*low, *high)]
    if any(interior) or min(bounds) < 0:
        raise UnsupportedError(f"run-time padding of low {low}, high {high}, interior {interior}; edges at least 0, interior 0 are")
    shape = [size_algebra.plus(n, size_algebra.plus(a, b)) for n, a, b in zip(shape_of(operand), low, high)]
    frame = broadcast(conversion, value, (), tuple(shape))
    return [conversion.emit(nd.DynamicUpdateSliceOp.make(frame, operand, [position_of(conversion, n) for n in low]))]


def real_dynamic_slice(conversion: Conversion, op: Operation) -> Values:
    """`operand[start:limit:stride]` with run-time bounds that lie inside, as StableHLO asks."""
    assert conversion.dynamic is not None
    operand = conversion.values[op.operands[0]]
    low, high, step = (conversion.dynamic.symbolic.sizes(v) for v in op.operands[1:])
    strides = [n for n in step if isinstance(n, int)]
    if len(strides) < rank_of(operand) or None in low or None in high:
        raise UnsupportedError(f"run-time bounds {low}, {high}, {step} that do not follow from sizes of arguments")
    taken = [size_algebra.minus(b, a) for a, b in zip(low, high)]
    part = conversion.emit(nd.DynamicSliceOp.make(operand, [position_of(conversion, n) for n in low], taken))
    if set(strides) <= {1}:
        return [part]
    ends = [n if isinstance(n, int) else TO_END for n in taken]
    return [conversion.emit(nd.SliceOp.make(part, [0] * len(ends), ends, strides))]


def shape_assertion(conversion: Conversion, op: Operation) -> Values:
    """`custom_call @shape_assertion(holds, sizes..)`: a limit of an argument's size, or an assertion of the program."""
    dynamic = conversion.dynamic
    held = dynamic.symbolic.of(op.operands[0]) if dynamic is not None else None
    if held is not None and held[0] is True:
        return ()
    if dynamic is not None and held is not None and isinstance(held[0], Comparison) and dynamic.symbolic.learn(held[0]):
        return ()
    given = attribute(op, "error_message")
    message = given.data if isinstance(given, StringAttr) and given.data else "an assertion about sizes does not hold"
    for k, value in enumerate(op.operands[1:]):
        sizes = dynamic.symbolic.of(value) if dynamic is not None else None
        message = message.replace(f"{{{k}}}", str(sizes[0]) if sizes is not None else "?")
    conversion.builder.op(nd.AssertOp, [conversion.values[op.operands[0]]], [], {"message": StringAttr(message)})
    return ()


def inlined_call(conversion: Conversion, op: Operation, callee: SymbolRefAttr) -> Values:
    """The body of the called function in place, with what is known about sizes."""
    function = conversion.functions.get(callee.string_value())
    body = function.body.first_block if function is not None else None
    if conversion.dynamic is None or body is None:
        raise UnsupportedError(f"a call of @{callee.string_value()}, which has no body")
    known = conversion.dynamic.symbolic.known
    given = conversion.operands(op)
    for argument, value in zip(body.args, op.operands):
        if value in known:
            known[argument] = known[value]
        else:
            known.pop(argument, None)
    results = conversion.inline(body, given)
    returned = body.last_op
    for result, value in zip(op.results, returned.operands if returned is not None else ()):
        if value in known:
            known[result] = known[value]
        else:
            known.pop(result, None)
    return results


def limits(conversion: Conversion, names: Sequence[str]) -> dict[str, Limits]:
    """What the assertions of the program say about these names."""
    assert conversion.dynamic is not None
    found = conversion.dynamic.symbolic.limits
    return {name: found[name] for name in names if name in found and found[name] != Limits()}


RULES: dict[str, Rule] = {
    "stablehlo.get_dimension_size": get_dimension_size,
    "stablehlo.dynamic_reshape": dynamic_reshape,
    "stablehlo.dynamic_broadcast_in_dim": dynamic_broadcast_in_dim,
    "stablehlo.dynamic_iota": dynamic_iota,
    "stablehlo.dynamic_pad": dynamic_pad,
    "stablehlo.real_dynamic_slice": real_dynamic_slice,
}
