"""`rng_bit_generator`: XLA's streams, bit for bit. The state is (key, counter) in 64-bit words; the state that results counts on.

THREE_FRY hashes a 64-bit counter, PHILOX one of 128 bits (the low word first); DEFAULT is PHILOX, as on XLA's CPU.
How words become elements: `xla/hlo/builder/lib/prng.cc`.
"""

from __future__ import annotations

from math import prod
from typing import Any

from xdsl.dialects.builtin import IntegerType, StringAttr
from xdsl.ir import Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.nd.random import UI32, UI64
from gradir.dialects.types import element_of, is_integer, shape_of, static_shape, tensor
from gradir.frontends.stablehlo.conversion import Conversion, Rule, UnsupportedError, Values, reshape, splat
from gradir.frontends.stablehlo.dialect import attribute


class Words:
    """64-bit words and their halves as level-1 values."""

    def __init__(self, conversion: Conversion) -> None:
        self.conversion = conversion

    def number(self, value: int, like: SSAValue) -> SSAValue:
        """One number everywhere, in the type of `like`."""
        return self.conversion.constant(value, like.type)

    def word(self, state: SSAValue, at: int) -> SSAValue:
        """One word of the state, of rank 0."""
        return reshape(self.conversion, self.conversion.emit(nd.SliceOp.make(state, (at,), (at + 1,))), ())

    def convert(self, x: SSAValue, element: Any) -> SSAValue:
        """Integers of another width."""
        return x if element_of(x) == element else self.conversion.emit(nd.ConvertOp.make(x, element))

    def add(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """x + y, modulo the width."""
        return self.conversion.emit(nd.AddOp.make(x, y))

    def halves(self, x: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The low and the high 32 bits."""
        high = self.conversion.emit(nd.ShrUOp.make(x, self.number(32, x)))
        return self.convert(x, UI32), self.convert(high, UI32)

    def joined(self, low: SSAValue, high: SSAValue) -> SSAValue:
        """64 bits from two halves."""
        wide = self.convert(high, UI64)
        shifted = self.conversion.emit(nd.ShlOp.make(wide, self.number(32, wide)))
        return self.conversion.emit(nd.OrOp.make(self.convert(low, UI64), shifted))

    def key(self, word: SSAValue) -> SSAValue:
        """The 64-bit key as two words."""
        return self.concatenate([reshape(self.conversion, half, (1,)) for half in self.halves(word)], 0)

    def positions(self, shape: tuple[int, ...]) -> SSAValue:
        """The row-major position of each element, in 64 bits."""
        flat = self.conversion.emit(nd.IotaOp.make(tensor(UI64, (prod(shape),)), 0))
        return reshape(self.conversion, flat, shape)

    def concatenate(self, values: list[SSAValue], dim: int) -> SSAValue:
        """Side by side along `dim`."""
        return self.conversion.emit(nd.ConcatenateOp.make(values, dim))

    def block(self, op: nd.Threefry2x32Op | nd.Philox4x32Op) -> list[SSAValue]:
        """The words of one round of the generator."""
        nd.emit(self.conversion.builder, op)
        return list(op.results)

    def state(self, *words: SSAValue) -> SSAValue:
        """Words of rank 0 as a state."""
        return self.concatenate([reshape(self.conversion, word, (1,)) for word in words], 0)

    def moved(self, counter: SSAValue, count: int) -> SSAValue:
        """`counter + count`"""
        return self.add(counter, self.number(count, counter))


def rng_bit_generator(conversion: Conversion, op: Operation) -> Values:
    """(state with its counter moved on, bits)"""
    (state,) = conversion.operands(op)
    kind = op.results[1].type
    element, shape = element_of(kind), static_shape(kind)
    if not is_integer(element):
        raise UnsupportedError(f"random bits of element type {element}")
    algorithm = attribute(op, "rng_algorithm")
    name = str(algorithm.data if isinstance(algorithm, StringAttr) else algorithm)
    words = shape_of(state)[0]
    if element_of(state) != UI64 or words not in ((2,) if "THREE_FRY" in name else (2, 3)):
        raise UnsupportedError(f"a state of type {state.type} for {name}")
    w = Words(conversion)
    assert isinstance(element, IntegerType)
    generate = _threefry if "THREE_FRY" in name else _philox
    moved, bits = generate(w, state, shape, element.width.data == 64)
    return [moved, w.convert(bits, element)]


def _threefry(w: Words, state: SSAValue, shape: tuple[int, ...], wide: bool) -> tuple[SSAValue, SSAValue]:
    """ui64: one block an element. Else the blocks of half the shape, first and second words in turn along the dimension halved."""
    key, counter = w.word(state, 0), w.word(state, 1)
    even = [d for d, n in enumerate(shape) if n % 2 == 0]
    at = even[0] if even else max(range(len(shape)), key=lambda d: (shape[d], -d), default=0)
    full = shape or (1,)
    counted = shape if wide else (*full[:at], (full[at] + 1) // 2, *full[at + 1 :])
    inputs = w.add(splat(w.conversion, counter, counted), w.positions(counted))
    low, high = w.block(nd.Threefry2x32Op.make(w.key(key), *w.halves(inputs)))
    moved = w.state(key, w.moved(counter, prod(counted)))
    if wide:
        return moved, w.joined(low, high)
    if not shape:
        return moved, reshape(w.conversion, low, ())
    apart = (*counted[: at + 1], 1, *counted[at + 1 :])
    pairs = w.concatenate([reshape(w.conversion, half, apart) for half in (low, high)], at + 1)
    return moved, _cut(w, pairs, (*counted[:at], 2 * counted[at], *counted[at + 1 :]), shape)


def _philox(w: Words, state: SSAValue, shape: tuple[int, ...], wide: bool) -> tuple[SSAValue, SSAValue]:
    """The words of block after block, four of 32 bits or two of 64."""
    key, low = w.word(state, 0), w.word(state, 1)
    has_high = shape_of(state)[0] == 3
    high = w.word(state, 2) if has_high else key  # as XLA does
    size = prod(shape)
    count = (size * (2 if wide else 1) + 3) // 4
    first, carried = _add_128(w, low, high, w.positions((count,)))
    block = w.block(nd.Philox4x32Op.make(w.key(key), *w.halves(first), *w.halves(carried)))
    columns = [w.joined(block[0], block[1]), w.joined(block[2], block[3])] if wide else block
    table = w.concatenate([reshape(w.conversion, column, (count, 1)) for column in columns], 1)
    flat = _cut(w, table, (count * len(columns),), (size,))
    end, end_high = _add_128(w, low, high, w.number(count, low))
    moved = w.state(key, end, end_high) if has_high else w.state(key, end)
    return moved, reshape(w.conversion, flat, shape)


def _add_128(w: Words, low: SSAValue, high: SSAValue, amount: SSAValue) -> tuple[SSAValue, SSAValue]:
    """(low, high) + amount"""
    shape = static_shape(amount)
    low, high = splat(w.conversion, low, shape), splat(w.conversion, high, shape)
    total = w.add(low, amount)
    carry = w.conversion.emit(nd.CompareOp.make("lt", total, low))
    return total, w.conversion.emit(nd.SelectOp.make(carry, w.moved(high, 1), high))


def _cut(w: Words, x: SSAValue, shape: tuple[int, ...], wanted: tuple[int, ...]) -> SSAValue:
    """`x` in `shape`, of which the leading elements along each dimension are wanted."""
    x = reshape(w.conversion, x, shape)
    return x if shape == wanted else w.conversion.emit(nd.SliceOp.make(x, [0] * len(wanted), wanted))


RULES: dict[str, Rule] = {"stablehlo.rng_bit_generator": rng_bit_generator}
