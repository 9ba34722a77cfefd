"""Cotangents of slices of one value, side by side: joined when somebody reads the whole, not padded to full size and added.

    %i, %f = nd.slice %gates ..        %dgates = nd.concatenate %di, %df

A value of n slices costs n full-size zeros and n - 1 full-size sums otherwise: gates of an LSTM, coordinates of a point.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import SSAValue

from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import nd
from gradir.dialects.nd.shape import TO_END
from gradir.dialects.types import NARROW_CLASSES, element_of, shape_of, tensor


@dataclass(frozen=True)
class Part:
    """`ct` is the cotangent of the elements `start` to `limit` along `dim`, all of the other dimensions."""

    dim: int
    start: int
    limit: int
    ct: SSAValue


def part_of(op: nd.SliceOp, ct: SSAValue) -> Part | None:
    """What `op` read, where it is a stretch of one dimension of static size; else None."""
    start, stride, shape = op.numbers("start"), op.numbers("stride"), shape_of(op.operand)
    limit = [n if hi == TO_END else hi for hi, n in zip(op.numbers("limit"), shape)]
    cut = [k for k, n in enumerate(shape) if start[k] or limit[k] != n]
    if len(cut) != 1 or set(stride) != {1}:
        return None
    (dim,) = cut
    end = limit[dim]
    if not isinstance(shape[dim], int) or not isinstance(end, int) or end <= start[dim]:
        return None
    return Part(dim, start[dim], end, ct)


def joined(t: TensorBuilder, value: SSAValue, parts: list[Part]) -> list[SSAValue]:
    """Full-size cotangents of `value`, one per dimension that was cut; their sum is that of the parts. Sums of f16 and bf16 in f32."""
    found: list[SSAValue] = []
    for dim in dict.fromkeys(part.dim for part in parts):
        clusters = _clusters([part for part in parts if part.dim == dim])
        narrow = isinstance(element_of(value), NARROW_CLASSES) and any(len(cluster) > 1 for cluster in clusters)
        kind = tensor(f32 if narrow else element_of(value), shape_of(value))
        summed = [_summed(t, kind, cluster) for cluster in clusters]
        found.append(_spread(t, kind, summed, 0, _size(kind, dim)))
    return found


def _clusters(parts: list[Part]) -> list[list[Part]]:
    """The parts of one dimension in order, those that overlap together."""
    clusters: list[list[Part]] = []
    end = -1
    for part in sorted(parts, key=lambda p: (p.start, -p.limit)):
        if part.start >= end:
            clusters.append([])
        clusters[-1].append(part)
        end = max(end, part.limit)
    return clusters


def _summed(t: TensorBuilder, kind: TensorType, cluster: list[Part]) -> Part:
    """One part for parts that overlap: layers of parts side by side, added up."""
    layers: list[list[Part]] = []
    for part in cluster:
        free = next((layer for layer in layers if layer[-1].limit <= part.start), None)
        layers.append([part]) if free is None else free.append(part)
    start, limit = cluster[0].start, max(part.limit for part in cluster)
    total, *others = (_spread(t, kind, layer, start, limit) for layer in layers)
    for other in others:
        total = t.add(total, other)
    return Part(cluster[0].dim, start, limit, total)


def _spread(t: TensorBuilder, kind: TensorType, parts: list[Part], start: int, limit: int) -> SSAValue:
    """Parts side by side, with zeros around and between them, from `start` to `limit`."""
    shape, dim = shape_of(kind), parts[0].dim
    if len(parts) == 1:
        low, high = [0] * len(shape), [0] * len(shape)
        low[dim], high[dim] = parts[0].start - start, limit - parts[0].limit
        return t.pad(t.convert(parts[0].ct, kind.element_type), 0.0, low, high)
    pieces: list[SSAValue] = []
    at = start
    for part in parts:
        if part.start > at:
            pieces.append(_zeros(t, kind, dim, part.start - at))
        pieces.append(t.convert(part.ct, kind.element_type))
        at = part.limit
    if at < limit:
        pieces.append(_zeros(t, kind, dim, limit - at))
    return t.concatenate(pieces, dim)


def _zeros(t: TensorBuilder, kind: TensorType, dim: int, count: int) -> SSAValue:
    shape = shape_of(kind)
    return t.zeros(tensor(kind.element_type, (*shape[:dim], count, *shape[dim + 1 :])))


def _size(kind: TensorType, dim: int) -> int:
    size = shape_of(kind)[dim]
    assert isinstance(size, int), "asked in part_of"
    return size
