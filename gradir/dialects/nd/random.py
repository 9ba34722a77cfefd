"""Random bits: counter-based generators, so that every element is a function of the key and its position.

A key is `tensor<2xui32>` and never changes: who needs new numbers splits it. Distributions are functions of the frontend on top
(`gradir.random`). Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from xdsl.dialects.builtin import IndexType, IntegerType, Signedness, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from gradir.dialects.nd.base import TENSOR, NdOp, new
from gradir.dialects.nd.checks import check_element, check_same_types
from gradir.dialects.nd.composite import Composite
from gradir.dialects.nd.expansion import Expansion
from gradir.dialects.nd.shape import check_sizes, parse_sizes, print_sizes
from gradir.dialects.text import parse_operands, parse_tensor, parse_tensors, resolve
from gradir.dialects.types import element_of, is_unsigned, shape_of, tensor

if TYPE_CHECKING:
    from gradir.ir.builder import Builder

UI32 = IntegerType(32, Signedness.UNSIGNED)
UI64 = IntegerType(64, Signedness.UNSIGNED)
KEY = tensor(UI32, (2,))

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""Threefry-2x32: by how many bits each of four rounds rotates, two groups in turn, five groups."""
PARITY = 0x1BD11BDA
PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
PHILOX_WEYL = (0x9E3779B9, 0xBB67AE85)


def check_key(op: NdOp, key: SSAValue) -> None:
    """A key is two words."""
    if key.type != KEY:
        op.fail(f"the key must be {KEY}, found {key.type}")


@irdl_op_definition
class RandomBitsOp(NdOp):
    """`result[i] = bits of (a, b) = threefry2x32(key, n >> 32, n & 0xffffffff)`, n the row-major position of i, in 64 bits.

    ui64: `a << 32 | b`; ui32: `a ^ b`; ui16, ui8: the low bits of `a ^ b`. key `tensor<2xui32>`, result of any shape; `sizes` as in
    `nd.broadcast`. JAX: random.bits with threefry_partitionable, its default.
    """

    name = "nd.random_bits"
    FAMILY: ClassVar[str] = "random"

    key = operand_def(TENSOR)
    sizes = var_operand_def(IndexType)
    result = result_def(TENSOR)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_unresolved_operand()
        sizes = parse_sizes(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        key = parser.resolve_operand(name, parse_tensor(parser))
        parser.parse_punctuation("->")
        return cls.create(operands=(key, *sizes), result_types=(parse_tensor(parser),), attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.key)
        print_sizes(printer, self.sizes)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.key.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        check_key(self, self.key)
        check_element(self, "result", self.result, "integer")
        if not is_unsigned(element_of(self.result)):
            self.fail(f"the result must have unsigned elements (ui8, ui16, ui32, ui64), found {element_of(self.result)}")
        check_sizes(self, self.sizes, shape_of(self.result))

    @classmethod
    def make(cls, key: SSAValue, kind: TensorType[Any], sizes: Sequence[SSAValue] = ()) -> Self:
        """Bits for every element of the type `kind`."""
        return new(cls, (key, *sizes), kind)


class Generator(Composite):
    """A block of words from a key and a counter of as many words, elementwise: `n` operands after the key, `n` results."""

    FAMILY: ClassVar[str] = "random"
    WORDS: ClassVar[int] = 0

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parse_operands(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        key, words = parse_tensors(parser)
        values = resolve(parser, operands, [key, *[words] * (len(operands) - 1)], position)
        return cls.create(operands=values, result_types=[words] * cls.WORDS, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_operand)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list([self.operands[0].type, self.operands[1].type], printer.print_attribute)

    def verify_(self) -> None:
        check_key(self, self.operands[0])
        first = self.operands[1]
        if element_of(first) != UI32:
            self.fail(f"the counter must have ui32 elements, found {element_of(first)}")
        names = [f"word {k}" for k in range(self.WORDS)]
        check_same_types(self, names, self.operands[1:])
        for result in self.results:
            check_same_types(self, ("word 0", "result"), (first, result))

    @classmethod
    def make(cls, key: SSAValue, *counter: SSAValue) -> Self:
        """The block of words for each element of the counter."""
        types: list[Attribute] = [word.type for word in counter]
        return cls.create(operands=(key, *counter), result_types=types)

    def key_words(self, e: Expansion, operands: Sequence[SSAValue]) -> tuple[SSAValue, SSAValue]:
        """The two words of the key at every position of the counter."""
        like = operands[1]
        first, second = (e.element(operands[0], k) for k in range(2))
        return e.broadcast(first, (), shape_of(like)), e.broadcast(second, (), shape_of(like))


@irdl_op_definition
class Threefry2x32Op(Generator):
    """`(a, b) = threefry2x32(key, x, y)`, 20 rounds, elementwise: the bijection of two words that `nd.random_bits` is made of.

    key `tensor<2xui32>`; x, y and the results have one shape. JAX: the primitive threefry2x32.
    """

    name = "nd.threefry2x32"
    WORDS: ClassVar[int] = 2

    key = operand_def(TENSOR)
    x = operand_def(TENSOR)
    y = operand_def(TENSOR)
    a = result_def(TENSOR)
    b = result_def(TENSOR)

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        keys = list(self.key_words(e, operands))
        keys.append(e.xor(e.xor(keys[0], keys[1]), PARITY))
        a, b = e.add(operands[1], keys[0]), e.add(operands[2], keys[1])
        for group in range(5):
            for bits in ROTATIONS[group % 2]:
                a = e.add(a, b)
                b = e.xor(a, e.rotate(b, bits))
            a = e.add(a, keys[(group + 1) % 3])
            b = e.add(e.add(b, keys[(group + 2) % 3]), group + 1)
        return [a, b]


@irdl_op_definition
class Philox4x32Op(Generator):
    """`(a, b, c, d) = philox4x32(key, w, x, y, z)`, 10 rounds, elementwise.

    key `tensor<2xui32>`; the words of the counter, the least significant first, and the results have one shape. XLA: Philox4x32.
    """

    name = "nd.philox4x32"
    WORDS: ClassVar[int] = 4

    key = operand_def(TENSOR)
    w = operand_def(TENSOR)
    x = operand_def(TENSOR)
    y = operand_def(TENSOR)
    z = operand_def(TENSOR)
    a = result_def(TENSOR)
    b = result_def(TENSOR)
    c = result_def(TENSOR)
    d = result_def(TENSOR)

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        first, second = self.key_words(e, operands)
        words = list(operands[1:])
        for _ in range(10):
            (low0, high0), (low1, high1) = (e.multiply_wide(words[2 * k], m) for k, m in enumerate(PHILOX_MULTIPLIERS))
            words = [e.xor(e.xor(high1, words[1]), first), low1, e.xor(e.xor(high0, words[3]), second), low0]
            first, second = e.add(first, PHILOX_WEYL[0]), e.add(second, PHILOX_WEYL[1])
        return words


OPS = (RandomBitsOp, Threefry2x32Op, Philox4x32Op)
