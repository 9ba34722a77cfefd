"""What an edit is, and what several of them need: values that stand for removed ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from gradir.dialects.nd.creation import ConstantOp
from gradir.dialects.types import is_static
from gradir.dialects.upstream.arith import ConstantOp as ScalarConstantOp

Choose = Callable[[], bool]
"""Asked at every opportunity: whether to take it."""


@dataclass(frozen=True)
class Edit:
    """One way of making a module smaller. `alone`: opportunities exclude or hide each other, so they are taken one at a time."""

    name: str
    apply: Callable[[ModuleOp, Choose], None]
    alone: bool = False


def constant(kind: Attribute, value: int, like: Operation) -> Operation | None:
    """An op that gives `value` in every element of a value of that type, in the dialects of `like`; None if there is no such op."""
    if isinstance(kind, TensorType | VectorType):
        if isinstance(kind, TensorType) and not is_static(kind):
            return None
        shaped = cast("TensorType[Any] | VectorType[Any]", kind)
        if isinstance(kind, TensorType) and is_level_1(like):
            return _splat(kind, value)
        if (element := scalar(shaped.element_type, value)) is None:
            return None
        dense = DenseIntOrFPElementsAttr.from_list(cast("Any", shaped), [element.value.data])
        return ScalarConstantOp.create(properties={"value": dense}, result_types=[kind], location=like.location)
    if (attribute := scalar(kind, value)) is None:
        return None
    return ScalarConstantOp.create(properties={"value": attribute}, result_types=[kind], location=like.location)


def _splat(kind: TensorType[Any], value: int) -> Operation | None:
    try:
        op = ConstantOp.splat(value, kind)
        op.verify_()
    except (VerifyException, AttributeError, TypeError, ValueError):  # an element type that has no such constant
        return None
    return op


def scalar(kind: Attribute, value: int) -> IntegerAttr[Any] | FloatAttr[Any] | None:
    """The attribute of a number of that type."""
    if isinstance(kind, AnyFloat):
        return FloatAttr(float(value), kind)
    if isinstance(kind, IntegerType | IndexType):
        return IntegerAttr(value, kind)
    return None


def is_level_1(op: Operation) -> bool:
    """Whether the module around `op` holds tensor-level ops."""
    top = op
    while (parent := top.parent_op()) is not None:
        top = parent
    return any(inner.name.startswith(("nd.", "ad.")) for inner in top.walk())


def replace_results(op: Operation, values: Sequence[SSAValue]) -> None:
    """`values` stand for the results of `op`, which goes."""
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    remove(op)


def remove(op: Operation) -> None:
    """Take an op without uses out of its block."""
    op.detach()
    op.erase()


def move_body(block: Block, before: Operation) -> Operation | None:
    """Move the ops of `block` in front of `before`; the terminator, which is left detached."""
    last = block.last_op
    for inner in list(block.ops):
        inner.detach()
        if inner is not last:
            assert before.parent is not None
            before.parent.insert_op_before(inner, before)
    return last
