"""What the folds of `nd` ask about values and build: constants, finiteness, small results computed by `evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign, isfinite, prod
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.dialects.nd.base import NdOp
from gradir.dialects.nd.comparison import SelectOp
from gradir.dialects.nd.complex import ComplexAttr
from gradir.dialects.nd.creation import DENSE_LIMIT, ConstantOp, IotaOp
from gradir.dialects.nd.elementwise import AbsOp, ConvertOp, MaxOp, MinOp, NegOp
from gradir.dialects.nd.shape import BroadcastOp, ConcatenateOp, ReshapeOp, ReverseOp, SliceOp, TransposeOp
from gradir.dialects.types import element_of, is_bool, is_inexact, is_static, numpy_dtype, shape_of
from gradir.lowering.folds.table import Folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

Values = Sequence[SSAValue] | None

DEPTH = 6
"""How many producers `is_finite` looks at: keeps it constant time."""


FOLDED_LIMIT = 1 << 22
"""Elements of a constant up to which it is computed with while compiling, where the program does not grow by that."""


def splat(value: SSAValue) -> float | int | None:
    """The number that fills a constant tensor, also through a broadcast; None of anything else."""
    op = value.owner
    if isinstance(op, BroadcastOp):
        op = op.operand.owner
    return op.splat_value if isinstance(op, ConstantOp) else None


def is_splat(value: SSAValue, number: float) -> bool:
    """A constant filled with `number`; zeros are told apart by sign."""
    found = splat(value)
    return found is not None and found == number and copysign(1, found) == copysign(1, number)


def is_one(value: SSAValue) -> bool:
    """A constant filled with 1 (`true` of i1)."""
    return abs(splat(value) or 0) == 1 if is_bool(element_of(value)) else is_splat(value, 1)


def place(folder: Folder, op: NdOp) -> SSAValue:
    """Put an op that a `make` gave in front of the current one; its result."""
    op.location = folder.op.location
    folder.insert(op)
    return op.results[0]


def fill(folder: Folder, kind: Attribute, number: float | int) -> SSAValue:
    """A constant of a static type, filled with one number."""
    return place(folder, ConstantOp.splat(number, kind))


def is_finite(value: SSAValue, depth: int = DEPTH) -> bool:
    """Known to hold neither NaN nor infinities."""
    if not isinstance(value.type, TensorType) or not is_inexact(element_of(value)):  # the size operand of a broadcast is an index
        return True
    op = value.owner
    if depth == 0 or not isinstance(op, Operation):
        return False
    if isinstance(op, ConstantOp):
        if isinstance(op.value, ComplexAttr):
            return isfinite(op.value.number.real) and isfinite(op.value.number.imag)
        return op.splat_value is not None and isfinite(op.splat_value)
    if isinstance(op, ConvertOp):
        return _converts_finitely(op)
    if isinstance(op, IotaOp):
        return numpy_dtype(element_of(value)).itemsize > 2
    if isinstance(op, SelectOp):
        return is_finite(op.on_true, depth - 1) and is_finite(op.on_false, depth - 1)
    if isinstance(op, _KEEP_FINITE):
        return all(is_finite(operand, depth - 1) for operand in op.operands)
    return False


_KEEP_FINITE = (NegOp, AbsOp, MaxOp, MinOp, BroadcastOp, ReshapeOp, TransposeOp, SliceOp, ReverseOp, ConcatenateOp)


def _converts_finitely(op: ConvertOp) -> bool:
    """An integer that the float type can hold: all of them but those beyond f16's range."""
    source, target = element_of(op.operand), element_of(op.result)
    return not is_inexact(source) and (str(target) != "f16" or numpy_dtype(source).itemsize == 1)


def fold_constants(op: NdOp, folder: Folder) -> Values:
    """f(constants) -> the constant, for splats of any size, short results, and results that take the place of a large constant."""
    constants = [operand.owner for operand in op.operands]
    if not constants or not all(isinstance(c, ConstantOp) for c in constants) or not is_static(op.results[0]):
        return None
    known = cast("list[ConstantOp]", constants)
    if op.FAMILY in ("elementwise", "mathematics") and all(c.is_splat for c in known):
        result = op.evaluate(*(_scalar(c) for c in known))
        return [fill(folder, op.results[0].type, result.item())]
    sizes = [_size(value) for value in (*op.operands, op.results[0])]
    if op.FAMILY == "composite" or (max(sizes) > DENSE_LIMIT and not _replaces_a_constant(op, known, sizes[-1])):
        return None
    return [place(folder, ConstantOp.make(op.evaluate(*(c.evaluate() for c in known))))]


def _replaces_a_constant(op: NdOp, known: Sequence[ConstantOp], size: int) -> bool:
    """Is the result no larger than a constant that nobody else reads? Weights in another layout are made once, not in each call."""
    if op.FAMILY not in ("elementwise", "shape", "mathematics") or len(op.results) != 1:
        return False
    large = [c for c in known if not c.is_splat and _size(c.result) > DENSE_LIMIT]
    gone = max((_size(c.result) for c in large), default=0)
    return size <= gone <= FOLDED_LIMIT and all(c.result.has_one_use() for c in large)


def _scalar(op: ConstantOp) -> NDArray[Any]:
    import numpy as np  # lazy: programs without constants to fold never pay for numpy

    value = op.value
    return np.asarray(value.number if isinstance(value, ComplexAttr) else op.splat_value).astype(numpy_dtype(element_of(op.result)))


def _size(value: SSAValue) -> int:
    return prod(cast("tuple[int, ...]", shape_of(value)))
