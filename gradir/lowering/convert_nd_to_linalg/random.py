"""Random bits: one nest that computes each element from the key and its position, 20 rounds of Threefry-2x32 in the body."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from gradir.dialects import nd
from gradir.dialects.nd.random import PARITY, ROTATIONS
from gradir.dialects.types import element_of, shape_of
from gradir.dialects.upstream import arith
from gradir.lowering.convert_nd_to_linalg.elements import lowered, width
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.nests import linear_index
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.scalars import Scalars, index_constant
from gradir.lowering.convert_nd_to_linalg.views import Linear, View, constant, dim


@lowers(nd.RandomBitsOp)
def lower_random_bits(lowering: Lowering, op: nd.RandomBitsOp) -> View:
    """`result[i] = bits(threefry(key, position of i))`"""
    shape, element = shape_of(op.result), lowered(element_of(op.result))
    lowering.learn_sizes(shape, op.sizes)
    key = lowering.view(op.key)
    words = [key.over([constant(k)]) for k in range(2)]
    sizes = [lowering.size_of(n) if not isinstance(n, int) else n for n in shape]
    known = [n for n in shape if isinstance(n, int)]
    small = len(known) == len(shape) and prod(known) <= 1 << 32

    def body(s: Scalars, first: SSAValue, second: SSAValue) -> SSAValue:
        place = _position(s, sizes)
        low = s.to(arith.IndexCastOp, place, i32) if small else s.to(arith.TruncIOp, s.to(arith.IndexCastOp, place, i64), i32)
        high = s.constant(0, i32) if small else _upper(s, s.to(arith.IndexCastOp, place, i64))
        a, b = _threefry(s, (first, second), high, low)
        if width(element) == 64:
            wide = s.i(arith.ShLIOp, s.to(arith.ExtUIOp, a, i64), s.constant(32, i64))
            return s.i(arith.OrIOp, wide, s.to(arith.ExtUIOp, b, i64))
        return s.to(arith.TruncIOp, s.i(arith.XOrIOp, a, b), element)

    return lowering.elementwise(op, words, body, compute=False)


def _position(s: Scalars, sizes: list[int | SSAValue]) -> SSAValue:
    """The row-major position of the element: one linear form, or where sizes are known only in the run `(i * n + j) * m + k`."""
    known = [n for n in sizes if isinstance(n, int)]
    if len(known) == len(sizes):
        strides = [prod(known[d + 1 :]) for d in range(len(known))]
        return linear_index(s, Linear(tuple((d, stride) for d, stride in enumerate(strides) if stride)))
    place = linear_index(s, dim(0))
    for d, n in enumerate(sizes[1:], 1):
        count = index_constant(s.builder, n) if isinstance(n, int) else n
        place = s.i(arith.AddiOp, s.i(arith.MuliOp, place, count), linear_index(s, dim(d)))
    return place


def _upper(s: Scalars, x: SSAValue) -> SSAValue:
    return s.to(arith.TruncIOp, s.i(arith.ShRUIOp, x, s.constant(32, i64)), i32)


def _threefry(s: Scalars, key: tuple[SSAValue, SSAValue], x: SSAValue, y: SSAValue) -> tuple[SSAValue, SSAValue]:
    keys = (*key, s.i(arith.XOrIOp, s.i(arith.XOrIOp, *key), s.constant(PARITY, i32)))
    x, y = s.i(arith.AddiOp, x, keys[0]), s.i(arith.AddiOp, y, keys[1])
    for group in range(5):
        for bits in ROTATIONS[group % 2]:
            x = s.i(arith.AddiOp, x, y)
            left = s.i(arith.ShLIOp, y, s.constant(bits, i32))
            right = s.i(arith.ShRUIOp, y, s.constant(32 - bits, i32))
            y = s.i(arith.XOrIOp, x, s.i(arith.OrIOp, left, right))
        x = s.i(arith.AddiOp, x, keys[(group + 1) % 3])
        y = s.i(arith.AddiOp, s.i(arith.AddiOp, y, keys[(group + 2) % 3]), s.constant(group + 1, i32))
    return x, y
