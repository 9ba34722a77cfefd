"""What the conversion of one module remembers, and what its rules are written with.

A rule takes the conversion and an op of StableHLO, appends ops of level 1 and gives one value per result; where it cannot, it raises
`UnsupportedError`. The conversion notes that, puts a placeholder in place of the results and goes on, so that one error names all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType, UnrealizedConversionCastOp, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from gradir.dialects import nd
from gradir.dialects.types import Dim, element_of, is_bool, is_complex, is_number, is_static, shape_of, tensor
from gradir.dialects.upstream import arith, tensor as upstream_tensor
from gradir.dialects.upstream.func import CallOp, FuncOp
from gradir.frontends.stablehlo.quantized_types import stored_type
from gradir.ir.builder import Builder
from gradir.ir.locations import position
from gradir.ir.passes import function_name, location_text

if TYPE_CHECKING:
    from gradir.frontends.stablehlo.dynamic import Dynamic

_QUANTIZING = ("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize")
"""Ops that know quantized numbers, which are tensors of integers at level 1."""


class UnsupportedError(Exception):
    """This op has no counterpart at level 1; the message says what about it."""


@dataclass(frozen=True)
class Missing:
    """One thing that cannot be imported."""

    op: str
    reason: str
    location: str
    function: str

    def __str__(self) -> str:
        return f"{self.location}: {self.op}: {self.reason}"


Values: TypeAlias = "Sequence[SSAValue]"
Rule: TypeAlias = "Callable[[Conversion, Operation], Values]"


@dataclass
class Conversion:
    """State: where ops go, what each value became, what is missing."""

    context: Context
    rules: Mapping[str, Rule]
    builder: Builder
    functions: Mapping[str, FuncOp] = field(default_factory=dict[str, FuncOp])
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    missing: list[Missing] = field(default_factory=list[Missing])
    sharded: list[Operation] = field(default_factory=list[Operation])
    """Ops whose sharding is ignored."""
    dynamic: Dynamic | None = None
    """What is known about run-time sizes; None where all are numbers."""
    elementwise: frozenset[str] = frozenset()
    """Ops whose operands have one shape."""

    # -- what rules use

    def operands(self, op: Operation) -> list[SSAValue]:
        """What the operands became."""
        return [self.values[value] for value in op.operands]

    def emit(self, op: Operation) -> SSAValue:
        """Append an op that a `make` gave; its result. What its verifier refuses is not supported."""
        try:
            op.verify_()
        except VerifyException as error:
            raise UnsupportedError(" ".join(str(error).split())) from error
        return nd.emit(self.builder, op)

    def constant(self, value: complex, kind: Attribute) -> SSAValue:
        """A tensor type filled with one number."""
        if is_static(kind):
            return self.emit(nd.ConstantOp.splat(value, kind))
        return broadcast(self, self.constant(value, tensor(element_of(kind))), (), shape_of(kind))

    def size(self, size: Dim) -> SSAValue:
        """A size as an index value."""
        if isinstance(size, int):
            return self.builder(arith.ConstantOp, [], [IndexType()], {"value": IntegerAttr(size, IndexType())})
        if size is None:
            raise UnsupportedError("a run-time size that nothing tells")
        return self.emit(nd.SymbolOp.make(size))

    def inline(self, block: Block, arguments: Values) -> list[SSAValue]:
        """The ops of `block` on these arguments, appended here; what its terminator returns."""
        self.values.update(zip(block.args, arguments))
        for op in block.ops:
            if is_return(op):
                return self.operands(op)
            self.convert(op)
        raise UnsupportedError("a region without stablehlo.return")

    def block(self, source: Block, types: Iterable[Attribute]) -> tuple[Block, list[SSAValue]]:
        """A new block that computes what `source` does, without a terminator, and what it returns."""
        made = Block(arg_types=list(types))
        outer, self.builder = self.builder, self.builder.nested(made)
        try:
            return made, self.inline(source, made.args)
        finally:
            self.builder = outer

    def callee(self, op: Operation) -> Block | None:
        """The body of the function that `op` calls; None of other ops."""
        if not isinstance(op, CallOp):
            return None
        function = self.functions.get(op.callee.string_value())
        return function.body.first_block if function is not None else None

    # -- one op

    def convert(self, op: Operation) -> None:
        """Append what `op` becomes, or note why it becomes nothing."""
        self.builder.loc = op.location
        if any(name.startswith("sdy.") or name == "mhlo.sharding" for name in op.attributes):
            self.sharded.append(op)
        try:
            results = self.results(op)
        except UnsupportedError as error:
            self.report(op, str(error))
            results = self.placeholders(op)
        self.values.update(zip(op.results, results))

    def results(self, op: Operation) -> Values:
        """What the results of `op` become."""
        rule = self.rules.get(op.name)
        if rule is None:
            raise UnsupportedError("no counterpart at level 1")
        for value in (*op.operands, *op.results):
            check_type(stored_type(value.type) if op.name in _QUANTIZING else value.type, run_time=self.dynamic is not None)
        if self.dynamic is not None:
            return self._results_of_run_time_size(rule, op)
        found = rule(self, op)
        for result, new in zip(op.results, found, strict=True):
            if new.type != stored_type(result.type):
                raise UnsupportedError(f"the result has type {result.type}, its counterpart {new.type}")
        return found

    def _results_of_run_time_size(self, rule: Rule, op: Operation) -> Values:
        """The same where sizes may have names: operands of one shape have one type, and what is known of sizes is followed."""
        from gradir.frontends.stablehlo import dynamic  # lazy: it is written with this class

        assert self.dynamic is not None
        dynamic.before(self, op)
        found = rule(self, op)
        self.dynamic.symbolic.follow(op)
        return [dynamic.check_result(self, new, result.type) for result, new in zip(op.results, found, strict=True)]

    def report(self, op: Operation, reason: str) -> None:
        """Note something that is missing."""
        name = getattr(getattr(op, "op_name", None), "data", op.name)
        self.missing.append(Missing(str(name), reason, place_of(op), function_name(op)))

    def placeholders(self, op: Operation) -> Values:
        """Values of the right types, so that the rest of the module can be looked at."""
        if not op.results:
            return ()
        return self.builder.op(UnrealizedConversionCastOp, (), [result.type for result in op.results]).results


def place_of(op: Operation) -> str:
    """Where `op` stands: its line, or its name (a step of JAX) and the line of the nearest op around it that has one."""
    name, outer = "", op
    while outer is not None:
        where = position(outer.location)
        name = name or location_text(outer.location)
        if where is not None and where.line:
            return str(where) if outer is op or not name else f"{where} ({name})"
        outer = outer.parent_op()
    return name or "<unknown>"


def listed(missing: Sequence[Missing]) -> str:
    """A line for each op and reason: where it stands first, and where else."""
    places: dict[tuple[str, str], dict[str, None]] = {}
    for item in missing:
        places.setdefault((item.op, item.reason), {})[item.location] = None
    lines: list[str] = []
    for (op, reason), found in places.items():
        first, *others = found
        more = (
            f" (also {', '.join(others[:MORE])}{f' and {len(others) - MORE} more places' if len(others) > MORE else ''})" if others else ""
        )
        lines.append(f"{first}: {op}: {reason}{more}")
    return "\n".join(lines)


MORE = 3
"""So many further places of one op and reason are listed."""


def is_return(op: Operation) -> bool:
    """The end of a region or a function."""
    return op.name in ("stablehlo.return", "func.return")


def check_type(kind: Attribute, *, run_time: bool = False) -> None:
    """Level 1 has tensors of numbers and booleans; `run_time`: of sizes that are known only when the program runs, too."""
    if not isinstance(kind, TensorType):
        raise UnsupportedError(f"type {kind}")
    element = element_of(cast("Attribute", kind))
    if not is_number(element) and not is_bool(element) and not is_complex(element):
        raise UnsupportedError(f"element type {element}")
    if not run_time and not is_static(cast("TensorType[Any]", kind)):
        raise UnsupportedError(f"sizes that are known only when the program runs, in {kind}")


# -- values that many rules make


def reshape(conversion: Conversion, value: SSAValue, shape: Sequence[Dim]) -> SSAValue:
    """The value in that shape."""
    return value if shape_of(value) == tuple(shape) else conversion.emit(nd.ReshapeOp.make(value, shape))


def transpose(conversion: Conversion, value: SSAValue, perm: Sequence[int]) -> SSAValue:
    """Result dim i is operand dim perm[i]."""
    return value if tuple(perm) == tuple(range(len(perm))) else conversion.emit(nd.TransposeOp.make(value, perm))


def position_of(conversion: Conversion, at: Dim) -> SSAValue:
    """A place along a dimension, a number or computed from sizes, as a rank-0 tensor."""
    if isinstance(at, int):
        return conversion.constant(at, tensor(i64))
    builder = conversion.builder
    return builder(upstream_tensor.FromElementsOp, [builder(arith.IndexCastOp, [conversion.size(at)], [i64])], [tensor(i64)])


def broadcast(conversion: Conversion, value: SSAValue, dims: Sequence[int], shape: Sequence[Dim]) -> SSAValue:
    """`broadcast_in_dim`: sizes of 1 stretch."""
    sizes = shape_of(value)
    kept = [k for k, d in enumerate(dims) if sizes[k] == shape[d]]
    value = reshape(conversion, value, [sizes[k] for k in kept])
    places = [dims[k] for k in kept]
    if places == list(range(len(shape))):
        return value
    order = sorted(range(len(places)), key=lambda k: places[k])
    value = transpose(conversion, value, order)
    run_time = [conversion.size(n) for n in shape if not isinstance(n, int)]
    return conversion.emit(nd.BroadcastOp.make(value, [places[k] for k in order], shape, run_time))


def splat(conversion: Conversion, value: SSAValue, shape: Sequence[Dim]) -> SSAValue:
    """A rank-0 value at every position; a value that has the shape already as it is."""
    return value if shape_of(value) == tuple(shape) else broadcast(conversion, value, (), shape)


def like(conversion: Conversion, value: float | int, model: SSAValue) -> SSAValue:
    """A constant of the type of `model`."""
    return conversion.constant(value, tensor(element_of(model), shape_of(model)))
