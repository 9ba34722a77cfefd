"""What the ops of `nd` compute: one small numpy function per op, the definition that every level and target is checked against.

Sums and products of f32 and narrower run in f64 and are rounded once, other f32 functions are computed in f64 and rounded to f32, f16
and bf16 go through f32. Functions get the op (for its properties and result type) and the operand values; they never change an operand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gradir.dialects.nd.meaning import (
    activation,
    arrangement,
    attention,
    bits,
    complex as complex_numbers,
    composite,
    contraction,
    convolution,
    creation,
    cumulative,
    elementwise,
    fourier,
    gather_scatter,
    indexing,
    linalg,
    mathematics,
    normalization,
    quantization,
    random,
    reduction,
    region_reduction,
    shape,
    sorting,
    special,
    statistics,
)
from gradir.dialects.types import element_of, numpy_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gradir.dialects.nd.base import NdOp

EVALUATE: Mapping[str, Callable[..., Any]] = {
    **elementwise.EVALUATE,
    **mathematics.EVALUATE,
    **bits.EVALUATE,
    **quantization.EVALUATE,
    **special.EVALUATE,
    **complex_numbers.EVALUATE,
    **reduction.EVALUATE,
    **cumulative.EVALUATE,
    **contraction.EVALUATE,
    **convolution.EVALUATE,
    **shape.EVALUATE,
    **indexing.EVALUATE,
    **gather_scatter.EVALUATE,
    **creation.EVALUATE,
    **composite.EVALUATE,
    **activation.EVALUATE,
    **normalization.EVALUATE,
    **attention.EVALUATE,
    **random.EVALUATE,
    **sorting.EVALUATE,
    **statistics.EVALUATE,
    **arrangement.EVALUATE,
    **region_reduction.EVALUATE,
    **linalg.EVALUATE,
    **fourier.EVALUATE,
}
COMPLEX = complex_numbers.COMPLEX


SIZED = ("nd.dynamic_slice", "nd.irfft", "nd.reshape")
"""Ops whose shape may depend on names that no operand has; they take `sizes`."""


def evaluate(op: NdOp, operands: tuple[Any, ...], sizes: Mapping[str, int] | None = None) -> Any:
    """The op's result for these operand values, as an array of the result's dtype that shares no memory with them when it was computed.

    A tuple of arrays for an op of several results. `sizes` are the values of the names in its types.
    """
    with np.errstate(all="ignore"):
        arrays = [np.asarray(operand) for operand in operands]
        is_complex = op.name in COMPLEX and any(array.dtype.kind == "c" for array in arrays)
        options = {"sizes": sizes} if sizes and op.name in SIZED else {}
        found = (COMPLEX if is_complex else EVALUATE)[op.name](op, *arrays, **options)
    if len(op.results) == 1:
        return _checked(op, 0, found)
    return tuple(_checked(op, k, array) for k, array in enumerate(found))


def _checked(op: NdOp, position: int, found: Any) -> NDArray[Any]:
    result, dtype = np.asarray(found), numpy_dtype(element_of(op.results[position]))
    assert result.dtype == dtype, f"{op.name}: computed {result.dtype}, declared {dtype}"
    return result
