"""Derivatives of convolutions and pooling. Layout: lhs [N, spatial.., C], rhs [spatial.., C/g, O], result [N, spatial.., O]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from gradir import size_algebra
from gradir.autodiff.registry import Contribution, vjp
from gradir.autodiff.spell_out import LOOPS
from gradir.autodiff.tensors import TensorBuilder, known_sizes, needs_static_sizes
from gradir.dialects import nd
from gradir.dialects.nd.base import emit
from gradir.dialects.nd.convolution import window_count
from gradir.dialects.nd.regions import region_of
from gradir.dialects.nd.shape import TO_END
from gradir.dialects.types import Dim, element_of, i64_array, shape_of, tensor
from gradir.ir.builder import Builder
from gradir.ir.passes import error_at

Rule = tuple[Contribution, ...]


def convolve(
    t: TensorBuilder,
    lhs: SSAValue,
    rhs: SSAValue,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...],
    groups: int = 1,
    batch_groups: int = 1,
    elem: Any,
) -> SSAValue:
    """A convolution with its result shape worked out."""
    left, right = shape_of(lhs), shape_of(rhs)
    spatial = [
        window_count(left[1 + k], right[k], strides[k], padding[2 * k], padding[2 * k + 1], rhs_dilation[k], lhs_dilation[k])
        for k in range(len(strides))
    ]
    arrays = {"strides": strides, "padding": padding, "lhs_dilation": lhs_dilation, "rhs_dilation": rhs_dilation}
    return t.emit(
        nd.ConvGeneralOp,
        [lhs, rhs],
        tensor(elem, (size_algebra.floordiv(left[0], batch_groups), *spatial, right[-1])),
        **{k: i64_array(v) for k, v in arrays.items()},
        feature_groups=IntegerAttr(groups, i64),
        batch_groups=IntegerAttr(batch_groups, i64),
    )


@vjp(nd.ConvGeneralOp)
def conv_general_vjp(t: TensorBuilder, op: nd.ConvGeneralOp, ct: SSAValue) -> Rule:
    """y = x * w: dx = ct (dilated by the strides) * flipped w, dw = x * ct with batch and features exchanged.

    `batch_groups = b` is the same as moving b from the batch into the features and `feature_groups = b`.
    """
    strides, padding, ld, rd = op.numbers("strides"), op.numbers("padding"), op.numbers("lhs_dilation"), op.numbers("rhs_dilation")
    groups, batch_groups = op.number("feature_groups"), op.number("batch_groups")
    rank = len(strides)
    rhs_shape = known_sizes(op, op.rhs)
    space, out_space = _spatial(op, op.lhs), _spatial(op, op.result)
    lhs, wide = op.lhs, element_of(ct)  # where y is wider than x and w, the products are taken in its type and rounded once
    if batch_groups > 1:
        known_sizes(op, op.lhs)
        lhs = batch_to_features(t, lhs, batch_groups)
        groups = batch_groups
    per_in, features = rhs_shape[-2], rhs_shape[-1]
    per_out = features // groups
    window = rhs_shape[:rank]
    extent = [(w - 1) * d + 1 for w, d in zip(window, rd)]
    out_extent = [(o - 1) * s + 1 if o else 0 for o, s in zip(out_space, strides)]

    def by_lhs() -> SSAValue:
        # w[.., c, (g o)] -> flipped w[.., o, (g c)]
        w = t.reverse(t.reshape(t.convert(op.rhs, wide), (*window, per_in, groups, per_out)), range(rank))
        w = t.transpose(w, (*range(rank), rank + 2, rank + 1, rank))
        w = t.reshape(w, (*window, per_out, groups * per_in))
        pads: list[int] = []
        for k in range(rank):
            low = extent[k] - 1 - padding[2 * k]
            pads += [low, (space[k] - 1) * ld[k] + extent[k] - out_extent[k] - low]
        out = convolve(t, ct, w, strides=ld, padding=tuple(pads), lhs_dilation=strides, rhs_dilation=rd, groups=groups, elem=wide)
        return t.convert(features_to_batch(t, out, batch_groups, known_sizes(op, op.lhs)) if batch_groups > 1 else out, element_of(op.lhs))

    def by_rhs() -> SSAValue:
        # x[n, .., (g c)] -> x[(g c), .., n]; ct[n, .., (g o)] -> kernel [.., n, (g o)]; result [c, window, (g o)]
        x = t.transpose(t.convert(lhs, wide), (rank + 1, *range(1, rank + 1), 0))
        kernel = t.transpose(ct, (*range(1, rank + 1), 0, rank + 1))
        pads: list[int] = []
        for k in range(rank):
            low = padding[2 * k]
            have = (space[k] - 1) * ld[k] + 1 if space[k] else 0
            pads += [low, (window[k] - 1) * rd[k] + out_extent[k] - low - have]
        out = convolve(t, x, kernel, strides=rd, padding=tuple(pads), lhs_dilation=ld, rhs_dilation=strides, batch_groups=groups, elem=wide)
        return t.convert(t.transpose(out, (*range(1, rank + 1), 0, rank + 1)), element_of(op.rhs))

    return (by_lhs, by_rhs)


def _spatial(op: nd.ConvGeneralOp, value: SSAValue) -> tuple[int, ...]:
    """The sizes between batch and channels, which have to be numbers; the batch may have a name."""
    sizes = tuple(n for n in shape_of(value)[1:-1] if isinstance(n, int))
    if len(sizes) < len(shape_of(value)) - 2:
        raise needs_static_sizes(op, "spatial dimensions and channels that are numbers", value)
    return sizes


def batch_to_features(t: TensorBuilder, x: SSAValue, b: int) -> SSAValue:
    """[(b n), .., c] -> [n, .., (b c)]"""
    n, *space, c = (k for k in shape_of(x) if isinstance(k, int))
    rank = len(space)
    x = t.reshape(x, (b, n // b, *space, c))
    x = t.transpose(x, (1, *range(2, rank + 2), 0, rank + 2))
    return t.reshape(x, (n // b, *space, b * c))


def features_to_batch(t: TensorBuilder, x: SSAValue, b: int, shape: tuple[int, ...]) -> SSAValue:
    """The inverse of `batch_to_features`."""
    n, *space, c = shape
    rank = len(space)
    x = t.reshape(x, (n // b, *space, b, c))
    x = t.transpose(x, (rank + 1, 0, *range(1, rank + 1), rank + 2))
    return t.reshape(x, shape)


def window_loop(builder: Builder, op: nd.ReduceWindowOp) -> Sequence[SSAValue]:
    """A window of products: the fold over its positions, whose loop has a derivative that never divides."""
    element = element_of(op.operand)
    start = emit(builder, nd.ConstantOp.splat(1, tensor(element)))
    combiner = region_of([element, element], lambda inner, pair: [emit(inner, nd.MulOp.make(*pair))])
    fold = nd.ReduceWindowGeneralOp.make(
        [op.operand],
        [start],
        combiner,
        op.numbers("window"),
        strides=op.numbers("strides"),
        padding=op.numbers("padding"),
        dilations=op.numbers("dilations"),
    )
    return fold.spelled_out(builder)


def _multiplies(op: nd.ReduceWindowOp) -> bool:
    return op.kind.data == "prod"


LOOPS[nd.ReduceWindowOp] = (_multiplies, window_loop)


@vjp(nd.ReduceWindowOp)
def reduce_window_vjp(t: TensorBuilder, op: nd.ReduceWindowOp, ct: SSAValue) -> Rule:
    """sum: each element takes the cotangents of the windows that hold it; max, min: the first extremum of each window does

    A window of products is its loop by now.
    """
    kind = op.kind.data
    x = op.operand
    window, strides, padding, dilations = (op.numbers(a) for a in ("window", "strides", "padding", "dilations"))
    if kind == "sum":
        return (lambda: spread(t, op, ct, window, strides, padding, dilations),)

    def signed() -> SSAValue:
        return x if kind == "max" else t.neg(x)  # min(x) = -max(-x)

    if set(dilations) <= {1}:
        arrays = {"window": op.window, "strides": op.strides, "padding": op.padding}
        return (lambda: t.emit(nd.SelectAndScatterOp, [signed(), ct], x.type, **arrays),)
    return (lambda: scatter_to_first(t, op, signed(), ct, Windows.of(op, op.result, dilations)),)


def spread(
    t: TensorBuilder,
    op: Any,
    ct: SSAValue,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilations: tuple[int, ...],
) -> SSAValue:
    """The transpose of a windowed sum: a windowed sum of the dilated cotangent."""
    sizes, outs = shape_of(op.operand), shape_of(op.result)
    low, high = [], []
    for k, (n, out) in enumerate(zip(sizes, outs)):
        if not isinstance(n, int) or not isinstance(out, int):
            if (window[k], strides[k], padding[2 * k], padding[2 * k + 1]) != (1, 1, 0, 0):
                raise needs_static_sizes(op, "windows over dimensions that are numbers", op.operand)
            low.append(0)
            high.append(0)
            continue
        extent = (window[k] - 1) * dilations[k] + 1
        have = (out - 1) * strides[k] + 1 if out else 0
        lo = extent - 1 - padding[2 * k]
        low.append(lo)
        high.append(n - 1 + extent - have - lo)
    wide = t.pad(ct, 0.0, low, high, [s - 1 for s in strides])
    ones = i64_array((1,) * len(sizes))
    return t.emit(
        nd.ReduceWindowOp,
        [wide],
        op.operand.type,
        kind=op.kind,
        window=op.window,
        strides=ones,
        padding=i64_array((0,) * (2 * len(sizes))),
        dilations=op.dilations,
    )


@dataclass(frozen=True)
class Windows:
    """The geometry of pooling windows, and the positions in each: at most 256, since derivatives take one step per position."""

    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilations: tuple[int, ...]
    outs: tuple[Dim, ...]

    @classmethod
    def of(cls, op: Any, result: SSAValue, dilations: tuple[int, ...] | None = None) -> Windows:
        """The windows of `op`, one per element of `result`. Error AD008 for a window along a run-time size."""
        window, strides, padding = op.numbers("window"), op.numbers("strides"), op.numbers("padding")
        sides = zip(window, strides, padding[0::2], padding[1::2])
        if any(not isinstance(n, int) and side != (1, 1, 0, 0) for n, side in zip(shape_of(result), sides)):
            raise needs_static_sizes(op, "windows over dimensions that are numbers", result)
        return cls(window, strides, padding, dilations or (1,) * len(window), shape_of(result))

    def positions(self, op: Any) -> list[tuple[int, ...]]:
        """Offset of each window position, row-major."""
        if math.prod(self.window) > 256:
            raise error_at(
                op,
                "this derivative of max pooling takes one step per window position",
                part="autodiff",
                code="AD008",
                expected="windows of at most 256 positions",
                found=str(math.prod(self.window)),
            )
        return [tuple(a * d for a, d in zip(at, self.dilations)) for at in product(*(range(w) for w in self.window))]

    def read(self, t: TensorBuilder, padded: SSAValue, at: tuple[int, ...]) -> SSAValue:
        """The element at one position of every window."""
        limit = [a + (o - 1) * s + 1 if isinstance(o, int) else TO_END for a, o, s in zip(at, self.outs, self.strides)]
        return t.slice(padded, at, limit, self.strides)

    @staticmethod
    def rest(size: Dim, start: int, out: Dim, stride: int) -> int:
        """How many elements follow those that stand `stride` apart from `start` on."""
        return size - start - (out - 1) * stride - 1 if isinstance(size, int) and isinstance(out, int) else 0


def winners(t: TensorBuilder, op: Any, x: SSAValue, w: Windows) -> tuple[list[tuple[int, ...]], list[SSAValue]]:
    """For each window position, where it is the first maximum so far: the last true one is the winner. A NaN wins and stays."""
    padded = t.pad(x, -math.inf, w.padding[0::2], w.padding[1::2])
    positions = w.positions(op)
    best: SSAValue | None = None
    flags: list[SSAValue] = []
    for at in positions:
        here = w.read(t, padded, at)
        if best is None:
            best = here
            flags.append(t.compare("eq", t.full_like(0.0, here), t.full_like(0.0, here)))
            continue
        wins = t.logical_and(t.logical_or(t.compare("gt", here, best), t.is_nan(here)), t.logical_not(t.is_nan(best)))
        flags.append(wins)
        best = t.select(wins, here, best)
    return positions, flags


def scatter_to_first(t: TensorBuilder, op: Any, x: SSAValue, ct: SSAValue, w: Windows) -> SSAValue:
    """`ct` of each window placed at its first maximum, for windows that `nd.select_and_scatter` does not describe."""
    positions, flags = winners(t, op, x, w)
    low = w.padding[0::2]
    total, rest = None, ct
    for at, flag in reversed(list(zip(positions, flags))):
        mine = t.where(flag, rest)
        rest = t.select(flag, t.full_like(0.0, rest), rest)
        left = [a - lo for a, lo in zip(at, low)]
        right = [w.rest(n, lo, out, s) for n, lo, out, s in zip(shape_of(x), left, w.outs, w.strides)]
        placed = t.pad(mine, 0.0, left, right, [s - 1 for s in w.strides])
        total = placed if total is None else t.add(total, placed)
    assert total is not None
    return total


@vjp(nd.SelectAndScatterOp)
def select_and_scatter_vjp(t: TensorBuilder, op: nd.SelectAndScatterOp, ct: SSAValue) -> Rule:
    """Linear in the source: its cotangent is `ct` at the position that each window chose; the choice itself is constant."""
    w = Windows.of(op, op.source)

    def by_source() -> SSAValue:
        positions, flags = winners(t, op, op.operand, w)
        padded = t.pad(ct, 0.0, w.padding[0::2], w.padding[1::2])
        chosen = w.read(t, padded, positions[0])
        for at, flag in zip(positions[1:], flags[1:]):
            chosen = t.select(flag, w.read(t, padded, at), chosen)
        return chosen

    return (None, by_source)
