"""What every op of `nd` has in common: text, errors, meaning, samples.

An op class says what the op is (docstring, operands, properties, text form, verifier, `infer`, `make`). What it computes is a numpy
function of the same name in `nd/meaning/<family>.py`, and its small valid inputs are rows in `nd/samples/<family>.py`: both load on
first use, so that a tool that only reads text never imports numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, TensorType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from gradir.dialects.text import Clause, parse_op, print_op
from gradir.dialects.types import ints

if TYPE_CHECKING:
    import numpy as np

    from gradir.ir.builder import Builder


I64_ARRAY = DenseArrayBase.constr(i64)
I64 = IntegerAttr.constr(type=i64)
TENSOR = TensorType


@dataclass(frozen=True)
class Sample:
    """A small valid use of an op.

    `text` is a module whose public function `@f` uses the op; `inputs` gives its arguments; `wrt` are the positions of the arguments
    for which the gradient is checked numerically (empty: the op is not differentiable there, or the inputs sit on a kink).
    """

    name: str
    text: str
    inputs: Callable[[], tuple[np.ndarray[Any, Any], ...]]
    wrt: tuple[int, ...] = ()


class NdOp(IRDLOperation):
    """A pure op on tensors with one result."""

    FAMILY: ClassVar[str] = ""
    CLAUSES: ClassVar[tuple[Clause, ...]] = ()
    TYPES: ClassVar[str] = "all"

    traits = traits_def(Pure())

    @property
    def value_types(self) -> tuple[Attribute, ...]:
        """Types of the operands."""
        return tuple(operand.type for operand in self.operands)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return cast("Self", parse_op(cls, parser, cls.CLAUSES, cls.TYPES))

    def print(self, printer: Printer) -> None:
        print_op(self, printer, self.CLAUSES, self.TYPES)

    def fail(self, message: str) -> NoReturn:
        """Refuse this op: `nd.add: shapes differ: ...`."""
        raise VerifyException(f"{self.name}: {message}")

    def numbers(self, prop: str) -> tuple[int, ...]:
        """The numbers of an array property."""
        return ints(self.properties[prop])

    def number(self, prop: str) -> int:
        """The number of an integer property."""
        return cast("IntegerAttr[Any]", self.properties[prop]).value.data

    def evaluate(self, *arrays: Any) -> Any:
        """The op's definition: the result (a tuple of several) for these operand values, which it never changes."""
        return import_module("gradir.dialects.nd.meaning").evaluate(self, arrays)

    @classmethod
    def has_meaning(cls) -> bool:
        """Whether `nd.meaning` defines what the op computes."""
        return cls.name in import_module("gradir.dialects.nd.meaning").EVALUATE

    @classmethod
    def samples(cls) -> tuple[Sample, ...]:
        """Small valid inputs: NaN, infinities, -0.0, ties, sizes 0 and 1, several element types."""
        samples = "gradir.dialects.nd.samples"
        more = (*import_module(f"{samples}.complex").complex_samples(cls.name), *import_module(f"{samples}.f8").f8_samples(cls.name))
        return (*import_module(f"{samples}.{cls.FAMILY}").samples_of(cls), *more)


def new(kind: type[Any], operands: Sequence[SSAValue], result: Attribute, properties: Mapping[str, Attribute] | None = None) -> Any:
    """One op of class `kind` without the checks and the cost of a constructor."""
    return kind.create(operands=tuple(operands), result_types=(result,), properties=dict(properties or {}))


def emit(builder: Builder, op: Operation) -> SSAValue:
    """Append an op that a `make` gave, at the builder's location; its result."""
    op.location = builder.loc
    builder.block.add_op(op)
    return op.results[0]
