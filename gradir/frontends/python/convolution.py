"""Convolutions with any layout, their transposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, i64

from gradir.dialects import nd
from gradir.dialects.nd.convolution import window_count
from gradir.dialects.types import i64_array
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.contraction import factors, padding_of, per_dim
from gradir.frontends.python.dims import sized
from gradir.frontends.python.operands import as_array, with_shape
from gradir.frontends.python.shape import flip, swapaxes, transpose
from gradir.frontends.python.sizes import whole
from gradir.frontends.python.trace import apply, user_error

Numbers = int | Sequence[int]


def _places(layout: str, letters: str, name: str) -> tuple[int, ...]:
    """Where the letters are in a layout."""
    if sorted(layout) != sorted(letters):
        raise user_error(
            "dimension_numbers do not fit", code="GR001", op="nd.conv_general", expected=f"{name} with the letters {letters}", found=layout
        )
    return tuple(layout.index(letter) for letter in letters)


def _orders(numbers: Sequence[str], rank: int) -> list[tuple[int, ...]]:
    """Permutations of x, w and the result to N spatial.. C, spatial.. I O and N spatial.. C: of words such as ("NCHW", "OIHW", "NCHW")."""
    if len(numbers) != 3 or any(len(word) != rank + 2 for word in numbers):
        expected = f"three words of {rank + 2} letters"
        raise user_error("dimension_numbers do not fit", code="GR001", op="nd.conv_general", expected=expected, found=str(numbers))
    spatial = "".join(letter for letter in numbers[0] if letter not in "NC")
    return [
        _places(numbers[0], f"N{spatial}C", "x"),
        _places(numbers[1], f"{spatial}IO", "w"),
        _places(numbers[2], f"N{spatial}C", "the result"),
    ]


def _back(order: Sequence[int]) -> list[int]:
    return [order.index(k) for k in range(len(order))]


def conv(
    x: Any,
    w: Any,
    strides: Numbers = 1,
    padding: str | Sequence[Any] = "VALID",
    dilations: Numbers = 1,
    groups: int = 1,
    *,
    lhs_dilation: Numbers = 1,
    batch_groups: int = 1,
    dimension_numbers: Sequence[str] | None = None,
    preferred_element_type: Any = None,
) -> Array:
    """Convolution (correlation) of `x` [N, spatial.., C] with `w` [spatial.., C/groups, O]

    `lhs_dilation` puts zeros between the elements of x. `dimension_numbers` names other layouts, e.g. ("NCHW", "OIHW", "NCHW").
    `preferred_element_type` is that of the sums and of the result.
    """
    a, b, dtype = factors("conv", x, w, preferred_element_type)
    rank = a.ndim - 2
    groups, batch_groups = whole("groups", groups, 1), whole("batch_groups", batch_groups, 1)
    orders = None if dimension_numbers is None else _orders(dimension_numbers, rank)
    if orders is not None and b.ndim == a.ndim:
        a, b = transpose(a, orders[0]), transpose(b, orders[1])
    if b.ndim != a.ndim or rank < 1 or a.shape[-1] != b.shape[-2] * groups or a.shape[0] % batch_groups:
        raise user_error(
            "conv: shapes do not fit",
            code="GR001",
            op="nd.conv_general",
            expected="x [N, spatial.., C] and w [spatial.., C/groups, O]",
            found=f"{a.shape} and {b.shape} with groups={groups}",
        )
    st, di, between = (
        per_dim(name, value, rank) for name, value in (("strides", strides), ("dilations", dilations), ("lhs_dilation", lhs_dilation))
    )
    window = b.shape[:rank]
    spread = [(n - 1) * gap + 1 if gap > 1 and n != 0 else n for n, gap in zip(a.shape[1:-1], between)]
    pads = padding_of(padding, spread, window, st, di)
    spatial = tuple(sized(window_count(n, window[k], st[k], pads[2 * k], pads[2 * k + 1], di[k])) for k, n in enumerate(spread))
    batch = a.shape[0] if batch_groups == 1 else a.shape[0] // batch_groups
    found = apply(
        nd.ConvGeneralOp,
        [a, b],
        with_shape(a, (batch, *spatial, b.shape[-1]), dtype),
        strides=i64_array(st),
        padding=i64_array(pads),
        lhs_dilation=i64_array(between),
        rhs_dilation=i64_array(di),
        feature_groups=IntegerAttr(groups, i64),
        batch_groups=IntegerAttr(batch_groups, i64),
    )
    return found if orders is None else transpose(found, _back(orders[2]))


def conv_transpose(
    x: Any,
    w: Any,
    strides: Numbers = 1,
    padding: str | Sequence[Any] = "SAME",
    dilations: Numbers = 1,
    *,
    transpose_kernel: bool = False,
    dimension_numbers: Sequence[str] | None = None,
    preferred_element_type: Any = None,
) -> Array:
    """Transposed convolution: zeros between the elements of `x`, `strides` apart, then a convolution with `w` [spatial.., C, O]

    SAME gives sizes n * stride, VALID all positions that x reaches. With `transpose_kernel` w is the kernel [spatial.., O, C] of the
    convolution whose gradient this is: flipped, channels swapped. JAX: lax.conv_transpose.
    """
    a, b = as_array(x), as_array(w)
    rank = a.ndim - 2
    orders = None if dimension_numbers is None else _orders(dimension_numbers, rank)
    if orders is not None:
        a, b = transpose(a, orders[0]), transpose(b, orders[1])
    st, di = per_dim("strides", strides, rank), per_dim("dilations", dilations, rank)
    if transpose_kernel:
        b = swapaxes(flip(b, tuple(range(rank))), -2, -1)
    if isinstance(padding, str):
        reach = [(k - 1) * d + 1 for k, d in zip(b.shape[:rank], di)]
        pads: str | Sequence[Any] = [_transposed_padding(padding, k, s) for k, s in zip(reach, st)]
    else:
        pads = padding
    found = conv(a, b, 1, pads, di, lhs_dilation=st, preferred_element_type=preferred_element_type)
    return found if orders is None else transpose(found, _back(orders[2]))


def _transposed_padding(padding: str, window: int, stride: int) -> tuple[int, int]:
    """Low and high padding of the dilated input."""
    if padding.upper() == "SAME":
        total = window + stride - 2
        low = window - 1 if stride > window - 1 else -(-total // 2)
    elif padding.upper() == "VALID":
        total = window + stride - 2 + max(window - stride, 0)
        low = window - 1
    else:
        raise user_error("unknown padding", code="GR105", expected="'SAME', 'VALID' or (low, high) pairs", found=repr(padding))
    return low, total - low
