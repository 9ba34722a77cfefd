"""The state while one function is written: lines, names of values, what is known already.

Handlers of op families (`arithmetic`, `memory`, `control`, ...) are small functions `(emitter, op)` in tables by op name; this class
is what they share. A value is a string (scalar or 1-D vector), a list of rows (rank >= 2), a `Column` or a `Buffer`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.ir.passes import error_at
from gradir.targets.llvm.types import BufferType, ValueType, splat_literal

if TYPE_CHECKING:
    from gradir.targets.llvm.module import ModuleEmitter

Index: TypeAlias = int | str
"""An index: a constant, or the name of an i64."""


class Column(list[str]):
    """A 1-D vector held as scalars: what a strided read gives, and what an outer product wants on its left."""


@dataclass(slots=True)
class Buffer:
    """A memref: pointer (offset applied), sizes and strides in elements; `root` is the argument or allocation that it points into."""

    pointer: str
    sizes: tuple[Index, ...]
    strides: tuple[Index, ...]
    type: BufferType
    root: str = ""


Value: TypeAlias = "str | list[str] | Column | Buffer"
RowFunction: TypeAlias = Callable[[str], str] | Callable[[str, str], str] | Callable[[str, str, str], str]
"""What an elementwise op does to one row of each operand."""
Handler: TypeAlias = "Callable[[FunctionEmitter, Any], None]"


class FunctionEmitter:
    """Writes one LLVM function."""

    def __init__(self, module: ModuleEmitter, failure: Callable[[FunctionEmitter, str], None] | None = None) -> None:
        self.module = module
        self.handlers = module.handlers
        self.failure = failure
        self.lines: list[str] = []
        self.stack: list[str] = []  # allocas, first in the function
        self.values: dict[SSAValue, Value] = {}
        self.label = "entry"
        self.count = 0
        self.noalias: set[str] = set()
        self._known: dict[str, str] = {}
        self._order: list[str] = []
        self.in_parallel = False
        self.streams = False
        """Has it non-temporal stores? They are ordered by a fence only, which comes before each return."""

    # Text

    def define(self, text: str) -> str:
        """Append an instruction and name its result."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def pure(self, text: str) -> str:
        """`define`, unless the same instruction was written where it dominates this point."""
        name = self._known.get(text)
        if name is None:
            name = self.define(text)
            self._known[text] = name
            self._order.append(text)
        return name

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def fresh(self) -> int:
        """A number for a group of labels."""
        self.count += 1
        return self.count

    def start(self, label: str) -> None:
        """Begin the basic block `label`."""
        self.lines.append(label + ":")
        self.label = label

    def enter(self) -> int:
        """Open a scope: what is defined until `leave` is not known afterwards."""
        return len(self._order)

    def leave(self, mark: int) -> None:
        order = self._order
        while len(order) > mark:
            del self._known[order.pop()]

    def stack_slot(self, text: str) -> str:
        """An alloca in the entry block."""
        self.count += 1
        name = f"%s{self.count}"
        self.stack.append(f"  {name} = alloca {text}")
        return name

    # Types and values

    def type(self, t: Attribute) -> ValueType:
        return self.module.value_type(t)

    def type_of(self, value: SSAValue) -> ValueType:
        return self.module.value_type(value.type)

    def text(self, value: SSAValue) -> str:
        """The one name of a scalar or 1-D vector; packs a `Column`."""
        found = self.values[value]
        if type(found) is str:
            return found
        if isinstance(found, Column):
            packed = self.pack(found, self.type_of(value))
            self.values[value] = packed
            return packed
        assert isinstance(found, list) and len(found) == 1, value
        return found[0]

    def rows(self, value: SSAValue) -> list[str]:
        """All rows; one for a scalar or a vector of rank 1."""
        found = self.values[value]
        if type(found) is list:
            return found
        return [self.text(value)]

    def set_rows(self, value: SSAValue, rows: list[str]) -> None:
        self.values[value] = rows if self.type_of(value).rank >= 2 else rows[0]

    def buffer(self, value: SSAValue) -> Buffer:
        found = self.values[value]
        assert isinstance(found, Buffer), value
        return found

    def index(self, value: SSAValue) -> Index:
        """An index value, as an int where it is a constant."""
        name = self.values[value]
        assert type(name) is str
        return name if name[0] in "%@" else int(name)

    # Arithmetic on indices, with constants folded

    def add(self, a: Index, b: Index) -> Index:
        if isinstance(a, int):
            if isinstance(b, int):
                return a + b
            a, b = b, a
        return a if b == 0 else self.pure(f"add nsw i64 {a}, {b}")

    def sub(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self.pure(f"sub nsw i64 {a}, {b}")

    def mul(self, a: Index, b: Index) -> Index:
        if isinstance(a, int):
            if isinstance(b, int):
                return a * b
            a, b = b, a
        if b == 0:
            return 0
        return a if b == 1 else self.pure(f"mul nsw i64 {a}, {b}")

    def product(self, sizes: Sequence[Index]) -> Index:
        total: Index = 1
        for size in sizes:
            total = self.mul(total, size)
        return total

    def offset(self, indices: Sequence[Index], strides: Sequence[Index]) -> tuple[Index, int]:
        """Dynamic and constant part of the sum of index * stride, in elements."""
        dynamic: Index = 0
        constant = 0
        for index, stride in zip(indices, strides):
            term = self.mul(index, stride)
            if isinstance(term, int):
                constant += term
            else:
                dynamic = self.add(dynamic, term)
        return dynamic, constant

    def element_pointer(self, pointer: str, t: BufferType, offset: Index, constant: int = 0) -> str:
        """Pointer to the element at `offset + constant`; the constant comes last so that addressing modes take it."""
        element = t.element.memory_element
        if offset != 0:
            pointer = self.pure(f"getelementptr inbounds {element}, {t.pointer} {pointer}, i64 {offset}")
        if constant:
            pointer = self.pure(f"getelementptr inbounds {element}, {t.pointer} {pointer}, i64 {constant}")
        return pointer

    def contiguous(self, sizes: Sequence[Index]) -> tuple[Index, ...]:
        """Strides of a buffer without gaps, innermost dimension last."""
        strides: list[Index] = []
        step: Index = 1
        for size in reversed(sizes):
            strides.append(step)
            step = self.mul(step, size)
        return tuple(reversed(strides))

    # Vectors

    def pack(self, scalars: Sequence[str], t: ValueType) -> str:
        """A 1-D vector of scalars."""
        if all(s[0] != "%" for s in scalars):
            return "<" + ", ".join(f"{t.element} {s}" for s in scalars) + ">"
        row = "poison"
        for lane, scalar in enumerate(scalars):
            row = self.pure(f"insertelement {t.text} {row}, {t.element} {scalar}, i32 {lane}")
        return row

    def splat(self, scalar: str, t: ValueType) -> str:
        """One row with all lanes equal (the scalar itself for a scalar type)."""
        if not t.lanes:
            return scalar
        if scalar[0] != "%":
            return splat_literal(scalar, t)
        one = self.pure(f"insertelement {t.text} poison, {t.element} {scalar}, i32 0")
        return one if t.lanes == 1 else self.pure(f"shufflevector {t.text} {one}, {t.text} poison, <{t.lanes} x i32> zeroinitializer")

    def lane(self, row: str, t: ValueType, lane: Index) -> str:
        """Element `lane` of a row."""
        if row.startswith("splat ("):
            return row.rpartition(" ")[2][:-1]
        return self.pure(f"extractelement {t.text} {row}, i64 {lane}")

    def shuffle(self, a: str, b: str, t: ValueType, lanes: Sequence[int]) -> str:
        """A row of lanes of `a` (0..n-1) and `b` (n..)."""
        if len(lanes) == t.lanes and list(lanes) == list(range(t.lanes)):
            return a
        mask = ", ".join(f"i32 {k}" for k in lanes)
        return self.pure(f"shufflevector {t.text} {a}, {t.text} {b}, <{len(lanes)} x i32> <{mask}>")

    def call(self, result: str, intrinsic: str, arguments: Sequence[tuple[str, str]], flags: str = "") -> str:
        """A pure intrinsic call; LLVM's parser declares intrinsics by itself."""
        passed = ", ".join(f"{t} {v}" for t, v in arguments)
        return self.pure(f"call {flags}{result} @{intrinsic}({passed})")

    def map_rows(self, op: Operation, function: RowFunction) -> None:
        """Apply `function` to the rows of all operands; `pure` writes equal rows once."""
        result = op.results[0]
        operands = op.operands
        t = self.type_of(result)
        apply: Callable[..., str] = function
        if t.rank < 2:
            self.values[result] = apply(*[self.text(v) for v in operands])
            return
        columns = [self.rows(v) for v in operands]
        columns = [c * t.rows if len(c) != t.rows else c for c in columns]  # a scalar operand (arith.select) serves all rows
        self.values[result] = [apply(*row) for row in zip(*columns)]

    # Values as their parts: what crosses calls, loop headers and closures

    def parts(self, value: SSAValue) -> list[tuple[str, str]]:
        """(LLVM type, name) of everything that makes up `value`, as its type tells."""
        found = self.values[value]
        if isinstance(found, Buffer):
            t = self.module.buffer_type(value.type)
            parts = [(t.pointer, found.pointer)]
            parts += [("i64", str(size)) for size, static in zip(found.sizes, t.sizes) if static is None]
            if t.strides is not None:
                parts += [("i64", str(stride)) for stride, static in zip(found.strides, t.strides) if static is None]
            return parts
        row = self.type_of(value).text
        return [(row, name) for name in self.rows(value)]

    def part_types(self, t: Attribute) -> list[str]:
        """LLVM types of the parts of a value of type `t`."""
        if isinstance(t, MemRefType):
            b = self.module.buffer_type(t)
            return [b.pointer] + ["i64"] * (b.sizes.count(None) + (b.strides.count(None) if b.strides is not None else 0))
        v = self.type(t)
        return [v.text] * (v.rows if v.rank >= 2 else 1)

    def assemble(self, t: Attribute, names: Sequence[str], root: str = "") -> Value:
        """The value of type `t` whose parts are `names`."""
        if not isinstance(t, MemRefType):
            return list(names) if self.type(t).rank >= 2 else names[0]
        b = self.module.buffer_type(t)
        rest = iter(names[1:])
        sizes = tuple(next(rest) if n is None else n for n in b.sizes)
        strides = self.contiguous(sizes) if b.strides is None else tuple(next(rest) if s is None else s for s in b.strides)
        return Buffer(names[0], sizes, strides, b, root or names[0])

    # Blocks

    def block(self, block: Block) -> Operation | None:
        """Write all ops but the terminator, which is returned."""
        handlers = self.handlers
        last = block.last_op
        for op in block.ops:
            if op is last and op.name in TERMINATORS:
                return op
            handler = handlers.get(op.name)
            if handler is None:
                raise error_at(
                    op,
                    "no LLVM code for this op",
                    part="operator",
                    code="OP040",
                    expected="an op of level 4",
                    found=op.name,
                    hint="run the pipeline `to-loops` first (`expand-math` for math ops)",
                )
            handler(self, op)
        return None

    def fence(self) -> None:
        """Before a return: non-temporal stores of this function are seen before whatever the caller stores next."""
        if self.streams and self.module.is_x86:
            self.line("call void @llvm.x86.sse.sfence()")

    def fail(self, status: str) -> None:
        """Leave the function with a status."""
        if self.failure is None:
            self.line(f"ret i32 {status}")
        else:
            self.failure(self, status)


TERMINATORS = frozenset({"scf.yield", "scf.condition", "scf.reduce", "scf.reduce.return", "func.return", "gpu.return", "gpu.terminator"})
