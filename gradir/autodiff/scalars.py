"""Level-1 elementwise ops as ops of `arith` and `math` on scalars, so that rules written for tensors hold for scalars too.

`TensorBuilder` comes here when its operands are scalars: the body of a `linalg.generic`, an element taken out of a tensor. The strong
product has no op of its own below level 1; it is `select(x == 0 or y == 0, 0, x * y)`, as `convert-nd-to-linalg` writes it, and
`is_strong_product` knows it again: its derivative is that of the product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType, TensorType, VectorType, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.upstream import arith, math
from gradir.ir.builder import Builder

DIRECT: Mapping[type[Operation], type[Operation]] = {
    nd.NegOp: arith.NegfOp,
    nd.AddOp: arith.AddfOp,
    nd.SubOp: arith.SubfOp,
    nd.MulOp: arith.MulfOp,
    nd.DivOp: arith.DivfOp,
    nd.RemOp: arith.RemFOp,
    nd.MaxOp: arith.MaximumfOp,
    nd.MinOp: arith.MinimumfOp,
    nd.PowOp: math.PowFOp,
    nd.Atan2Op: math.Atan2Op,
    nd.AbsOp: math.AbsFOp,
    nd.ExpOp: math.ExpOp,
    nd.Expm1Op: math.ExpM1Op,
    nd.LogOp: math.LogOp,
    nd.Log1pOp: math.Log1pOp,
    nd.SqrtOp: math.SqrtOp,
    nd.CbrtOp: math.CbrtOp,
    nd.TanhOp: math.TanhOp,
    nd.ErfOp: math.ErfOp,
    nd.ErfcOp: math.ErfcOp,
    nd.SinOp: math.SinOp,
    nd.CosOp: math.CosOp,
    nd.TanOp: math.TanOp,
    nd.AsinOp: math.AsinOp,
    nd.AcosOp: math.AcosOp,
    nd.AtanOp: math.AtanOp,
    nd.SinhOp: math.SinhOp,
    nd.CoshOp: math.CoshOp,
    nd.AsinhOp: math.AsinhOp,
    nd.AcoshOp: math.AcoshOp,
    nd.AtanhOp: math.AtanhOp,
    nd.FloorOp: math.FloorOp,
    nd.CeilOp: math.CeilOp,
    nd.FmaOp: math.FmaOp,
}
"""Ops whose scalar form has the same operands in the same order."""

_PREDICATES = {
    "eq": ("oeq", "eq"),
    "ne": ("une", "ne"),
    "lt": ("olt", "slt"),
    "le": ("ole", "sle"),
    "gt": ("ogt", "sgt"),
    "ge": ("oge", "sge"),
}
"""Direction of `nd.compare` -> the predicate on floats, that on integers."""


def is_scalar(kind: Attribute) -> bool:
    """Whether a value of this type is one number: no tensor, no vector."""
    return isinstance(kind, AnyFloat | IntegerType | IndexType) and not isinstance(kind, TensorType | VectorType)


def constant(builder: Builder, value: float, kind: Attribute) -> SSAValue:
    """The number `value` of type `kind`."""
    attr = FloatAttr(value, kind) if isinstance(kind, AnyFloat) else IntegerAttr(int(value), kind)  # pyright: ignore[reportArgumentType, reportCallIssue] (an integer or index type)
    return builder(arith.ConstantOp, [], [kind], {"value": attr})


def emit(
    builder: Builder, kind: type[Operation], operands: Sequence[SSAValue], result: Attribute, properties: Mapping[str, Attribute]
) -> SSAValue:
    """The op `kind` of level 1 on scalars."""
    plain = DIRECT.get(kind)
    if plain is not None:
        return builder(plain, operands, [result], _flags(plain))
    return _SPECIAL[kind](builder, operands, result, properties)


def _flags(kind: type[Operation]) -> dict[str, Attribute]:
    return {"fastmath": arith.FastMathFlagsAttr("none")} if "fastmath" in kind.get_irdl_definition().properties else {}  # pyright: ignore[reportAttributeAccessIssue] (an IRDL op)


def _compare(builder: Builder, operands: Sequence[SSAValue], result: Attribute, properties: Mapping[str, Attribute]) -> SSAValue:
    direction: Any = properties["direction"]
    on_floats, on_integers = _PREDICATES[str(direction.data)]
    if isinstance(operands[0].type, AnyFloat):
        return compare(builder, on_floats, operands[0], operands[1])
    return builder(arith.CmpiOp, operands, [i1], {"predicate": arith.integer_predicate(on_integers)})


def compare(builder: Builder, predicate: str, x: SSAValue, y: SSAValue) -> SSAValue:
    """`arith.cmpf`"""
    number = IntegerAttr(arith.CMPF_COMPARISON_OPERATIONS.index(predicate), i64)
    return builder(arith.CmpfOp, [x, y], [i1], {"predicate": number, **_flags(arith.CmpfOp)})


def select(builder: Builder, pred: SSAValue, on_true: SSAValue, on_false: SSAValue) -> SSAValue:
    return builder(arith.SelectOp, [pred, on_true, on_false], [on_true.type])


def _select(builder: Builder, operands: Sequence[SSAValue], result: Attribute, properties: Mapping[str, Attribute]) -> SSAValue:
    return select(builder, *operands)


def _not(builder: Builder, operands: Sequence[SSAValue], result: Attribute, properties: Mapping[str, Attribute]) -> SSAValue:
    true = builder(arith.ConstantOp, [], [i1], {"value": IntegerAttr(-1, i1)})
    return builder(arith.XOrIOp, [operands[0], true], [i1])


def _of_bits(kind: type[Operation]) -> Callable[..., SSAValue]:
    def rule(builder: Builder, operands: Sequence[SSAValue], result: Attribute, properties: Mapping[str, Attribute]) -> SSAValue:
        return builder(kind, operands, [result])

    return rule


def _sign(builder: Builder, operands: Sequence[SSAValue], result: Attribute, properties: Mapping[str, Attribute]) -> SSAValue:
    """Zeros and NaN are their own sign."""
    (x,) = operands
    zero = constant(builder, 0.0, x.type)
    below = select(builder, compare(builder, "olt", x, zero), constant(builder, -1.0, x.type), x)
    return select(builder, compare(builder, "ogt", x, zero), constant(builder, 1.0, x.type), below)


def _rsqrt(builder: Builder, operands: Sequence[SSAValue], result: Attribute, properties: Mapping[str, Attribute]) -> SSAValue:
    root = emit(builder, nd.SqrtOp, operands, result, {})
    return emit(builder, nd.DivOp, [constant(builder, 1.0, result), root], result, {})


def _convert(builder: Builder, operands: Sequence[SSAValue], result: Attribute, properties: Mapping[str, Attribute]) -> SSAValue:
    """Between floats; f16 and bf16 by way of f32."""
    (x,) = operands
    assert isinstance(x.type, AnyFloat) and isinstance(result, AnyFloat)
    if x.type.bitwidth < result.bitwidth:
        return builder(arith.ExtFOp, [x], [result])
    if x.type.bitwidth == result.bitwidth and x.type != result:
        raise AssertionError(f"no cast between {x.type} and {result}: cotangents are f32 or the value's own type")
    return builder(arith.TruncFOp, [x], [result])


def _mul_strong(builder: Builder, operands: Sequence[SSAValue], result: Attribute, properties: Mapping[str, Attribute]) -> SSAValue:
    """0 * anything = 0; a plain product where one factor is a finite number other than 0."""
    x, y = operands
    product = emit(builder, nd.MulOp, operands, result, {})
    if is_harmless(x) or is_harmless(y):
        return product
    zero = constant(builder, 0.0, result)
    either = builder(arith.OrIOp, [compare(builder, "oeq", x, zero), compare(builder, "oeq", y, zero)], [i1])
    return select(builder, either, zero, product)


_SPECIAL: Mapping[type[Operation], Callable[..., SSAValue]] = {
    nd.CompareOp: _compare,
    nd.SelectOp: _select,
    nd.NotOp: _not,
    nd.AndOp: _of_bits(arith.AndIOp),
    nd.OrOp: _of_bits(arith.OrIOp),
    nd.SignOp: _sign,
    nd.RsqrtOp: _rsqrt,
    nd.ConvertOp: _convert,
    nd.MulStrongOp: _mul_strong,
}


KINDS = frozenset((*DIRECT, *_SPECIAL))
"""The ops of level 1 that have a scalar form."""


def number_of(value: SSAValue) -> float | None:
    """The float that `value` is, where it is a constant."""
    if isinstance(value.owner, arith.ConstantOp) and isinstance(value.owner.value, FloatAttr):
        attr: FloatAttr[Any] = value.owner.value
        return attr.value.data
    return None


def is_harmless(value: SSAValue) -> bool:
    """A finite constant other than 0: its product with 0 is 0."""
    number = number_of(value)
    return number is not None and number != 0 and isfinite(number)


def is_strong_product(op: arith.SelectOp) -> bool:
    """Whether `op` is `select(x == 0 or y == 0, 0, x * y)`, or has one of the two conditions."""
    product = op.rhs.owner
    if number_of(op.lhs) != 0.0 or not isinstance(product, arith.MulfOp):
        return False
    conditions = list(op.cond.owner.operands) if isinstance(op.cond.owner, arith.OrIOp) else [op.cond]
    return all(_is_zero_test(c, product.operands) for c in conditions)


def _is_zero_test(condition: SSAValue, factors: Sequence[SSAValue]) -> bool:
    test = condition.owner
    if not isinstance(test, arith.CmpfOp) or arith.CMPF_COMPARISON_OPERATIONS[test.predicate.value.data] != "oeq":
        return False
    x, y = test.operands
    return (x in factors and number_of(y) == 0.0) or (y in factors and number_of(x) == 0.0)
