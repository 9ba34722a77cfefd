"""What one export remembers, and what its rules are written with: StableHLO as text, line by line.

A rule takes the writer, an op of level 1 and what its operands became; it writes lines and gives one value per result. Where it cannot, it
raises `UnsupportedError`; the export notes that and goes on, so that one error names all. Indices are `tensor<i64>`, scalars have rank 0.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import IndexType, TensorType, i1, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.dialects.types import element_of, is_bool, is_complex, is_float, is_unsigned, real_of, shape_of, static_shape, tensor
from gradir.frontends.stablehlo.conversion import Missing, UnsupportedError, place_of
from gradir.frontends.stablehlo.export.numbers import dense, number_text
from gradir.ir.passes import function_name


@dataclass(frozen=True)
class Value:
    """A value of the text: its name with the `%`, its type."""

    name: str
    type: TensorType[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return static_shape(self.type)

    @property
    def element(self) -> Attribute:
        """The element type."""
        return element_of(self.type)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(shape_of(self.type))


Values: TypeAlias = "Sequence[Value]"
ExportRule: TypeAlias = "Callable[[Writer, Any, Values], Values]"
Body: TypeAlias = "Callable[[Values], Values]"


@dataclass
class Writer:
    """State: the lines so far, what each value is called, functions that composites need, what is missing."""

    rules: Mapping[str, ExportRule]
    lines: list[str] = field(default_factory=list[str])
    values: dict[SSAValue, Value] = field(default_factory=dict[SSAValue, Value])
    missing: list[Missing] = field(default_factory=list[Missing])
    decompositions: dict[str, str] = field(default_factory=dict[str, str])
    """What a composite computes (its name, types and attributes) -> the function that spells it out."""
    functions: list[str] = field(default_factory=list[str])
    """The text of these functions."""
    taken: set[str] = field(default_factory=set[str])
    """Names of functions of the module."""
    depth: int = 2
    _names: int = 0

    # -- lines

    @contextmanager
    def function(self) -> Generator[list[str]]:
        """The lines of a function of its own, with names of its own, while the context lasts."""
        outer = self.lines, self.depth, self._names
        self.lines, self.depth, self._names = [], 2, 0
        try:
            yield self.lines
        finally:
            self.lines, self.depth, self._names = outer

    def fresh(self) -> str:
        """A new name."""
        self._names += 1
        return f"%{self._names - 1}"

    def line(self, text: str) -> None:
        """One line at the depth of the region."""
        self.lines.append("  " * self.depth + text)

    def op(
        self,
        name: str,
        operands: Values,
        results: Sequence[TensorType[Any]],
        attributes: str = "",
        regions: Sequence[str] = (),
    ) -> list[Value]:
        """An op in generic form: `%0 = "stablehlo.name"(%a) <{attributes}> ({region}) : (types) -> types`."""
        made = [Value(self.fresh(), kind) for kind in results]
        inside = f" <{{{attributes}}}>" if attributes else ""
        blocks = f" ({', '.join(regions)})" if regions else ""
        names = ", ".join(value.name for value in operands)
        types = f"({list_text(v.type for v in operands)}) -> {results_text(results)}"
        self.line(f'{self._assign(made)}"{name}"({names}){inside}{blocks} : {types}')
        return made

    def one(self, name: str, operands: Values, result: TensorType[Any], attributes: str = "", regions: Sequence[str] = ()) -> Value:
        """The same for an op with one result."""
        return self.op(name, operands, [result], attributes, regions)[0]

    def short(self, text: str, result: TensorType[Any], types: str = "") -> Value:
        """An op in its short form, `text : types`; `types` is that of the result unless given."""
        made = Value(self.fresh(), result)
        self.line(f"{made.name} = {text} : {types or type_text(result)}")
        return made

    @staticmethod
    def _assign(made: Values) -> str:
        return f"{', '.join(value.name for value in made)} = " if made else ""

    # -- ops that many rules write

    @staticmethod
    def part_of(value: Value) -> TensorType[Any]:
        """The type of the real and the imaginary part of a complex value."""
        return tensor(real_of(value.element), shape_of(value.type))

    @staticmethod
    def integers(value: Value) -> TensorType[Any]:
        """The type of i64 numbers, one per element of the value."""
        return tensor(i64, shape_of(value.type))

    def unary(self, name: str, operand: Value) -> Value:
        """An elementwise op whose result has the operand's type."""
        return self.short(f"{name} {operand.name}", operand.type)

    def binary(self, name: str, lhs: Value, rhs: Value) -> Value:
        """An elementwise op on two values of one type."""
        return self.short(f"{name} {lhs.name}, {rhs.name}", lhs.type)

    def compare(self, direction: str, lhs: Value, rhs: Value, kind: str = "") -> Value:
        """`lhs DIRECTION rhs`; `kind` is that of the element type unless given."""
        result = tensor(i1, shape_of(lhs.type))
        kind = kind or compare_kind(lhs.element)
        types = f"({list_text([lhs.type, rhs.type])}) -> {type_text(result)}"
        return self.short(f"stablehlo.compare {direction}, {lhs.name}, {rhs.name}, {kind}", result, types)

    def select(self, pred: Value, on_true: Value, on_false: Value) -> Value:
        """`on_true if pred else on_false`"""
        types = f"{type_text(pred.type)}, {type_text(on_true.type)}"
        return self.short(f"stablehlo.select {pred.name}, {on_true.name}, {on_false.name}", on_true.type, types)

    def constant(self, value: Any, element: Attribute, shape: Sequence[int] = ()) -> Value:
        """A tensor filled with one number."""
        return self.short(f"stablehlo.constant dense<{number_text(value, element)}>", tensor(element, shape))

    def array(self, data: Any, kind: TensorType[Any]) -> Value:
        """A constant with these elements (a numpy array)."""
        return self.short(f"stablehlo.constant dense<{dense(data, element_of(kind))}>", kind)

    def like(self, value: Any, model: Value) -> Value:
        """A constant of the type of `model`."""
        return self.constant(value, model.element, model.shape)

    def convert(self, operand: Value, element: Attribute) -> Value:
        """The values in that element type."""
        if operand.element == element:
            return operand
        return self._mapped("stablehlo.convert", operand, tensor(element, shape_of(operand.type)))

    def reshape(self, operand: Value, shape: Sequence[int]) -> Value:
        """The same elements in row-major order."""
        return operand if operand.shape == tuple(shape) else self._mapped("stablehlo.reshape", operand, tensor(operand.element, shape))

    def _mapped(self, name: str, operand: Value, result: TensorType[Any]) -> Value:
        return self.short(f"{name} {operand.name}", result, f"({type_text(operand.type)}) -> {type_text(result)}")

    def transpose(self, operand: Value, perm: Sequence[int]) -> Value:
        """Result dim i is operand dim perm[i]."""
        result = tensor(operand.element, [operand.shape[d] for d in perm])
        types = f"({type_text(operand.type)}) -> {type_text(result)}"
        return self.short(f"stablehlo.transpose {operand.name}, dims = {list(perm)}", result, types)

    def broadcast(self, operand: Value, dims: Sequence[int], shape: Sequence[int]) -> Value:
        """Operand dim k becomes result dim dims[k]."""
        result = tensor(operand.element, shape)
        types = f"({type_text(operand.type)}) -> {type_text(result)}"
        return self.short(f"stablehlo.broadcast_in_dim {operand.name}, dims = {list(dims)}", result, types)

    def slice(self, operand: Value, start: Sequence[int], limit: Sequence[int], stride: Sequence[int]) -> Value:
        """`operand[start:limit:stride]`"""
        shape = [max(0, -((a - b) // s)) for a, b, s in zip(start, limit, stride)]
        result = tensor(operand.element, shape)
        rows = ", ".join(f"{a}:{b}" + ("" if s == 1 else f":{s}") for a, b, s in zip(start, limit, stride))
        types = f"({type_text(operand.type)}) -> {type_text(result)}"
        return self.short(f"stablehlo.slice {operand.name} [{rows}]", result, types)

    def reduce(self, name: str, operand: Value, start: Value, dims: Sequence[int], result: TensorType[Any]) -> Value:
        """`start name operand name ..` along `dims`; `name` is an op of StableHLO."""
        types = f"({list_text([operand.type, start.type])}) -> {type_text(result)}"
        text = f"stablehlo.reduce({operand.name} init: {start.name}) applies {name} across dimensions = {list(dims)}"
        return self.short(text, result, types)

    # -- regions

    def region(self, types: Sequence[TensorType[Any]], body: Body, end: str = "stablehlo.return") -> str:
        """A region `{^bb0(arguments): ops}` whose body is what `body` writes for them."""
        arguments = [Value(self.fresh(), kind) for kind in types]
        outer, self.lines = self.lines, []
        self.depth += 1
        try:
            results = body(arguments)
            names, kinds = ", ".join(v.name for v in results), list_text(v.type for v in results)
            self.line(f"{end} {names} : {kinds}" if results else end)
            lines = self.lines
        finally:
            self.depth -= 1
            self.lines = outer
        head = f"\n{'  ' * self.depth}^bb0({', '.join(f'{v.name}: {type_text(v.type)}' for v in arguments)}):" if arguments else ""
        return "\n".join(["{" + head, *lines, "  " * self.depth + "}"])

    def applied(self, name: str, element: Attribute) -> str:
        """The region of two scalars that applies one op to them."""
        kind = tensor(element)
        return self.region([kind, kind], lambda pair: [self.binary(name, *pair)])

    # -- ops of level 1

    def block(self, block: Block, arguments: Values) -> list[Value]:
        """The ops of `block` on these arguments, written here; the operands of its terminator."""
        self.values.update(zip(block.args, arguments))
        *ops, end = block.ops
        for op in ops:
            self.convert_op(op)
        return self.operands(end)

    def operands(self, op: Operation) -> list[Value]:
        """What the operands became."""
        return [self.values[value] for value in op.operands]

    def convert_op(self, op: Operation) -> None:
        """Write what `op` becomes, or note why it becomes nothing."""
        try:
            results = self._results(op)
        except UnsupportedError as error:
            self.report(op, str(error))
            results = [Value("%missing", placeholder_type(result.type)) for result in op.results]
        self.values.update(zip(op.results, results))

    def _results(self, op: Operation) -> Values:
        rule = self.rules.get(op.name)
        if rule is None:
            raise UnsupportedError("no counterpart in StableHLO")
        for value in (*op.operands, *op.results):
            kind_of(value.type)
        return rule(self, op, self.operands(op))

    def report(self, op: Operation, reason: str) -> None:
        """Note something that is missing."""
        self.missing.append(Missing(op.name, reason, place_of(op), function_name(op)))


def direct(name: str) -> ExportRule:
    """The rule of an op that is one op of StableHLO, without attributes, on the same operands."""
    return lambda w, op, operands: [w.one(name, operands, kind_of(op.result.type))]


# -- types


def kind_of(kind: Attribute) -> TensorType[Any]:
    """The type of StableHLO that a type of level 1 becomes; raises UnsupportedError where there is none."""
    if isinstance(kind, IndexType):
        return tensor(i64)
    if not isinstance(kind, TensorType):
        if is_float(kind) or is_bool(kind) or hasattr(kind, "width"):
            return tensor(kind)
        raise UnsupportedError(f"type {kind}")
    found = cast("TensorType[Any]", kind)
    if not all(isinstance(n, int) for n in shape_of(found)):
        raise UnsupportedError(f"sizes that are known only when the program runs, in {found}")
    return tensor(i64, shape_of(found)) if isinstance(element_of(found), IndexType) else found


def placeholder_type(kind: Attribute) -> TensorType[Any]:
    """Some static type in place of one that has no counterpart."""
    try:
        return kind_of(kind)
    except UnsupportedError:
        if not isinstance(kind, TensorType):
            return tensor(i64)
        return tensor(element_of(cast("Attribute", kind)), [n if isinstance(n, int) else 1 for n in shape_of(cast("Attribute", kind))])


def type_text(kind: Attribute) -> str:
    """How the text spells a type."""
    return str(kind)


def list_text(types: Iterable[Attribute]) -> str:
    """Types between commas."""
    return ", ".join(map(type_text, types))


def results_text(types: Sequence[Attribute]) -> str:
    """The types of results: one bare, others in parentheses."""
    return type_text(types[0]) if len(types) == 1 else f"({list_text(types)})"


def compare_kind(element: Attribute) -> str:
    """FLOAT, SIGNED or UNSIGNED, as `compare` says it."""
    if is_float(element) or is_complex(element):
        return "FLOAT"
    return "UNSIGNED" if is_unsigned(element) or is_bool(element) else "SIGNED"


def i64s(numbers: Iterable[int]) -> str:
    """`array<i64: 1, 2>`"""
    items = ", ".join(map(str, numbers))
    return f"array<i64: {items}>" if items else "array<i64>"
