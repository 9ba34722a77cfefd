"""What a block under construction sees, and how a value of a wanted type comes from those that are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, TensorType, f64, i1, i64
from xdsl.ir import Attribute, Block, SSAValue

from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import nd
from gradir.dialects.types import Dim, shape_of, tensor
from gradir.dialects.upstream import arith, tensor as upstream_tensor
from gradir.ir.builder import Builder

INDEX = IndexType()
NUMBER = tensor(i64, ())
"""The type of integers."""

Shape = tuple[Dim, ...]
T = TypeVar("T")


def real(shape: Shape) -> TensorType[Any]:
    """The type of floats of that shape."""
    return tensor(f64, shape)


@dataclass
class Function:
    """A private function that is there already."""

    name: str
    arguments: list[Attribute]
    results: list[Attribute]


@dataclass
class Program:
    """What all blocks of one module share. `shapes` are those of its floats: a number, two vectors, a matrix and its transpose."""

    rng: np.random.Generator
    module: ModuleOp
    rows: Dim
    columns: int
    functions: list[Function] = field(default_factory=list[Function])
    deepest: int = 4

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return (), (self.rows,), (self.columns,), (self.rows, self.columns), (self.columns, self.rows)

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def below(self, n: int) -> int:
        return int(self.rng.integers(n))

    def one_of(self, rows: Sequence[T]) -> T:
        return rows[self.below(len(rows))]


class Scope:
    """`values` in order, the latest are used most; those from number `fresh` on are the block's own.

    `entry` is the block of the public function, to which arguments may be added; None in a function that is called already.
    """

    def __init__(self, program: Program, block: Block, values: Sequence[SSAValue], depth: int, entry: Block | None) -> None:
        self.program, self.block, self.values, self.depth, self.entry = program, block, list(values), depth, entry
        self.fresh = len(self.values)
        self.builder = Builder(block)
        self.t = TensorBuilder(self.builder)

    def inside(self, arguments: Sequence[Attribute] = ()) -> Scope:
        """A region of an op of this block: it sees what this block sees."""
        block = Block(arg_types=list(arguments))
        inner = Scope(self.program, block, self.values, self.depth + 1, self.entry)
        inner.add(*block.args)
        return inner

    def add(self, *values: SSAValue) -> None:
        self.values += values

    def emit(self, op: Any) -> SSAValue:
        return nd.emit(self.builder, op)

    def latest(self, accept: Callable[[SSAValue], bool]) -> SSAValue | None:
        """One of the values that are accepted, recent ones more often."""
        found = [v for v in self.values if accept(v)]
        return found[-1 - min(self.program.below(len(found)) for _ in range(2))] if found else None

    # -- floats

    def float_(self, shape: Shape | None = None) -> SSAValue:
        """A tensor of floats: one that is there, an argument, a constant, or one of another shape repeated or averaged."""
        program = self.program
        if shape is None:
            like = self.latest(is_real)
            shape = shape_of(like) if like is not None and program.chance(0.6) else program.one_of(program.shapes)
        kind = real(shape)
        found = self.latest(lambda v: v.type == kind)
        if found is not None and program.chance(0.85):
            return found
        other = self.latest(is_real)
        if other is not None and program.chance(0.6):
            return self.reshaped(other, shape)
        if self.entry is not None and len(self.entry.args) < 9:
            argument = self.entry.insert_arg(kind, len(self.entry.args))
            return argument
        if other is not None and program.chance(0.8):
            return self.reshaped(other, shape)
        return self.t.full(float(program.one_of([0.5, -0.7, 1.0, 0.0])), kind)

    def reshaped(self, value: SSAValue, shape: Shape) -> SSAValue:
        """The mean over dimensions that the shape has not, repeated along those that the value has not."""
        have = shape_of(value)
        if have == shape:
            return value
        if self.program.chance(0.3) and sorted(map(str, have)) == sorted(map(str, shape)):
            return self.t.transpose(value, tuple(reversed(range(len(have)))))
        kept: dict[int, int] = {}
        for k, n in enumerate(have):
            free = [j for j, m in enumerate(shape) if m == n and j > max(kept.values(), default=-1)]
            if free:
                kept[k] = free[0]
        reduced = [k for k in range(len(have)) if k not in kept]
        value = self.t.scale(self.t.sum(value, reduced), 0.4) if reduced else value
        return self.t.broadcast(value, real(shape), list(kept.values()))

    def bounded(self, value: SSAValue) -> SSAValue:
        """`value` within -1 and 1."""
        return self.t.unary(self.program.one_of([nd.TanhOp, nd.SinOp]), value)

    # -- integers

    def index_constant(self, n: int) -> SSAValue:
        return self.builder(arith.ConstantOp, (), [INDEX], {"value": IntegerAttr(n, INDEX)})

    def number(self) -> SSAValue:
        """An integer tensor of rank 0."""
        program = self.program
        found = self.latest(lambda v: v.type == NUMBER)
        draw = program.rng.random()
        if found is not None and draw < 0.6:
            return found
        if draw < 0.8:
            at = self.latest(lambda v: v.type == INDEX)
            if at is not None:
                return self.builder(upstream_tensor.FromElementsOp, [self.builder(arith.IndexCastOp, [at], [i64])], [NUMBER])
        if draw < 0.9 and self.latest(is_real) is not None:
            scaled = self.t.scale(self.float_(()), 2.5)
            return self.t.convert(self.emit(nd.FloorOp.make(scaled)), i64)
        if self.entry is not None and program.chance(0.5):
            return self.entry.insert_arg(NUMBER, len(self.entry.args))
        return self.emit(nd.ConstantOp.splat(program.below(5) - 1, NUMBER))

    def index(self, largest: int = 4) -> SSAValue:
        """An index value from 0 to `largest`: a constant, or computed from what is there."""
        program = self.program
        if program.chance(0.25):
            return self.index_constant(program.below(largest + 1))
        at = self.latest(lambda v: v.type == INDEX)
        if at is None or program.chance(0.4):
            scalar = self.builder(upstream_tensor.ExtractOp, [self.number()], [i64])
            at = self.builder(arith.IndexCastOp, [scalar], [INDEX])
        low = self.builder(arith.MaxSIOp, [at, self.index_constant(0)], [INDEX])
        return self.builder(arith.MinSIOp, [low, self.index_constant(largest)], [INDEX])

    def within(self, size: Dim) -> SSAValue | None:
        """An index value in bounds of a dimension of that size; None where nothing is in bounds for sure."""
        return self.index(size - 1) if isinstance(size, int) and size > 0 else None

    def truth(self) -> SSAValue:
        """An i1 scalar: a comparison of floats, of integers, or an argument."""
        program = self.program
        draw = program.rng.random()
        if draw < 0.45:
            direction = program.one_of(["lt", "ge", "gt"])
            test = self.t.compare(direction, self.float_(()), self.t.full(float(program.one_of([0.1, -0.2, 0.45])), real(())))
        elif draw < 0.9:
            even = self.t.binary(nd.AndOp, self.number(), self.emit(nd.ConstantOp.splat(1, NUMBER)))
            test = self.t.compare(program.one_of(["eq", "ne"]), even, self.emit(nd.ConstantOp.splat(0, NUMBER)))
        elif self.entry is not None:
            test = self.entry.insert_arg(tensor(i1, ()), len(self.entry.args))
        else:
            test = self.t.full(1, tensor(i1, ()))
        return self.builder(upstream_tensor.ExtractOp, [test], [i1])

    # -- several at once

    def some(self, count: int) -> list[SSAValue]:
        """One to `count` values that are there, floats mostly; the first is one."""
        program = self.program
        chosen = [self.float_()]
        for _ in range(program.below(count)):
            draw = program.rng.random()
            chosen.append(self.float_() if draw < 0.7 else self.number() if draw < 0.85 else self.index())
        return chosen

    def of_type(self, kind: Attribute) -> SSAValue:
        """A value of that type, of the block's own if there is one."""
        own = [v for v in self.values[self.fresh :] if v.type == kind]
        if own and self.program.chance(0.85):
            return own[-1 - min(self.program.below(len(own)) for _ in range(3))]
        if kind == INDEX:
            return self.index()
        if kind == NUMBER:
            return self.number()
        assert isinstance(kind, TensorType)
        return self.float_(shape_of(kind))


def is_real(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and value.type.element_type == f64
