"""Templates: private functions already made of loops, for ops whose writes no loop nest of linalg describes (scatter).

Destination-passing like every kernel: the last argument is the result's tensor, of which nothing is read. Equal requests share one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import FunctionType, IntegerAttr, StringAttr, SymbolRefAttr, TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue

from gradir.dialects.kernel import EFFECTS_ATTRIBUTE, KERNEL_ATTRIBUTE, PARALLEL, TemplateAttr
from gradir.dialects.types import i64_attr, shape_of
from gradir.dialects.upstream import arith, func, scf, tensor as tensors
from gradir.ir.builder import Builder, new_function
from gradir.lowering.convert_nd_to_linalg.nests import INDEX

TemplateBody = Callable[["LoopBuilder", Sequence[SSAValue]], SSAValue]
"""`body(loops, arguments)` -> the finished destination; the destination is the last argument."""
SeveralBody = Callable[["LoopBuilder", Sequence[SSAValue]], Sequence[SSAValue]]
"""The same for several destinations, which are the last arguments."""


class Templates:
    """The templates of a module, by what they do."""

    def __init__(self, taken: Sequence[str]) -> None:
        self.functions: list[func.FuncOp] = []
        self._names: dict[Any, str] = {}
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def call(
        self, builder: Builder, name: str, key: Any, operands: Sequence[SSAValue], destination: SSAValue, body: TemplateBody
    ) -> SSAValue:
        """A call of the template `name` for these operand types and `key`; built on first use."""
        (result,) = self.call_all(builder, name, key, operands, [destination], lambda loops, arguments: [body(loops, arguments)])
        return result

    def call_all(
        self, builder: Builder, name: str, key: Any, operands: Sequence[SSAValue], destinations: Sequence[SSAValue], body: SeveralBody
    ) -> list[SSAValue]:
        """As `call`, for a template of several destinations: results, or memory that it works in."""
        types = [v.type for v in (*operands, *destinations)]
        identity = (name, key, tuple(types))
        symbol = self._names.get(identity)
        if symbol is None:
            symbol = self._names[identity] = self._fresh(name)
            self.functions.append(self._build(symbol, types, body, builder))
        callee = {"callee": SymbolRefAttr(symbol)}
        return list(builder.op(func.CallOp, (*operands, *destinations), [v.type for v in destinations], callee).results)

    def declared(
        self,
        builder: Builder,
        name: str,
        operands: Sequence[SSAValue],
        destinations: Sequence[SSAValue],
        attributes: Mapping[str, Attribute],
    ) -> Sequence[SSAValue]:
        """The results of a call of a kernel without a body, which `attributes` describe; equal ones share one declaration."""
        types = [v.type for v in (*operands, *destinations)]
        results = [v.type for v in destinations]
        identity = (name, tuple(sorted(attributes.items())), tuple(types), len(results))
        symbol = self._names.get(identity)
        if symbol is None:
            symbol = self._names[identity] = self._fresh("".join(c if c.isalnum() else "_" for c in name))
            properties: dict[str, Attribute] = {
                "sym_name": StringAttr(symbol),
                "function_type": FunctionType.from_lists(types, results),
                "sym_visibility": StringAttr("private"),
            }
            self.functions.append(
                func.FuncOp.create(properties=properties, attributes=dict(attributes), regions=[Region()], location=builder.loc)
            )
        callee = {"callee": SymbolRefAttr(symbol)}
        marks = {EFFECTS_ATTRIBUTE: attributes[EFFECTS_ATTRIBUTE]} if EFFECTS_ATTRIBUTE in attributes else {}
        return builder.op(func.CallOp, (*operands, *destinations), results, callee, attributes=marks).results

    def number(self, what: str) -> int:
        """0, 1, 2, ...: numbers of `what` that no two functions of the module share."""
        number = self._numbers.get(what, 0)
        self._numbers[what] = number + 1
        return number

    def _fresh(self, name: str) -> str:
        count = 0
        while (symbol := f"{name}_{count}") in self._taken:
            count += 1
        self._taken.add(symbol)
        return symbol

    @staticmethod
    def _build(symbol: str, types: Sequence[Attribute], body: SeveralBody, builder: Builder) -> func.FuncOp:
        block = Block(arg_types=types)
        inner = Builder(block, builder.loc)
        results = body(LoopBuilder(inner), block.args)
        inner(func.ReturnOp, results)
        attributes = {KERNEL_ATTRIBUTE: TemplateAttr()}
        return new_function(symbol, block, [v.type for v in results], private=True, attributes=attributes, loc=builder.loc)


WORTH = 1 << 14
"""Elements to visit that are worth a thread."""


def _is_one(count: SSAValue) -> bool:
    value = count.owner.properties.get("value") if isinstance(count.owner, arith.ConstantOp) else None
    return isinstance(value, IntegerAttr) and value.value.data == 1


class LoopBuilder:
    """Loops and element accesses on tensors that loops carry."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def index(self, value: int) -> SSAValue:
        return self.builder(arith.ConstantOp, (), (INDEX,), {"value": IntegerAttr(value, INDEX)})

    def size(self, tensor: SSAValue, d: int) -> SSAValue:
        """The size of one dimension."""
        n = shape_of(tensor)[d]
        return self.index(n) if isinstance(n, int) else self.builder(tensors.DimOp, (tensor, self.index(d)), (INDEX,))

    def sizes(self, tensor: SSAValue) -> list[SSAValue]:
        """All sizes of a tensor."""
        return [self.size(tensor, d) for d in range(len(shape_of(tensor)))]

    def load(self, tensor: SSAValue, at: Sequence[SSAValue]) -> SSAValue:
        assert isinstance(tensor.type, TensorType)
        return self.builder(tensors.ExtractOp, (tensor, *at), (tensor.type.element_type,))

    def store(self, value: SSAValue, tensor: SSAValue, at: Sequence[SSAValue]) -> SSAValue:
        """The tensor with one element replaced."""
        return self.builder(tensors.InsertOp, (value, tensor, *at), (tensor.type,))

    def loops(
        self,
        counts: Sequence[SSAValue],
        carried: Sequence[SSAValue],
        body: Callable[[LoopBuilder, list[SSAValue], list[SSAValue]], Sequence[SSAValue]],
        *,
        work: int = 0,
        alone: bool = False,
    ) -> list[SSAValue]:
        """A nest of `scf.for` from 0 to each count; `body(loops, indices, carried)` gives the next carried values.

        `work` says that the trips write apart from each other, and about how many elements each visits: the outermost loop of more than one
        trip may then be spread over threads. `alone`: the outermost loop whatever its trips.
        """
        if not counts:
            return list(body(self, [], list(carried)))
        spread = work if work and (alone or not _is_one(counts[0])) else 0
        zero, one = self.index(0), self.index(1)
        block = Block(arg_types=[INDEX, *(v.type for v in carried)])
        inner = LoopBuilder(self.builder.nested(block))

        def rest(deeper: LoopBuilder, indices: list[SSAValue], values: list[SSAValue]) -> Sequence[SSAValue]:
            return body(deeper, [block.args[0], *indices], values)

        nexts = inner.loops(counts[1:], block.args[1:], rest, work=0 if spread else work)
        inner.builder(scf.YieldOp, nexts)
        attributes: dict[str, Attribute] = {PARALLEL: i64_attr(max(1, WORTH // spread))} if spread else {}
        types = [v.type for v in carried]
        loop = self.builder.op(scf.ForOp, (zero, counts[0], one, *carried), types, regions=[Region(block)], attributes=attributes)
        return list(loop.results)

    def when(self, condition: SSAValue, then: Callable[[LoopBuilder], SSAValue], otherwise: SSAValue) -> SSAValue:
        """`condition ? then() : otherwise`, evaluating `then` only where the condition holds."""
        return self.when_all(condition, lambda inner: [then(inner)], [otherwise])[0]

    def when_all(
        self, condition: SSAValue, then: Callable[[LoopBuilder], Sequence[SSAValue]], otherwise: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """The same for several values."""
        yes, no = Block(), Block()
        inner = LoopBuilder(self.builder.nested(yes))
        inner.builder.op(scf.YieldOp, then(inner))
        self.builder.nested(no).op(scf.YieldOp, otherwise)
        types = [value.type for value in otherwise]
        return list(self.builder.op(scf.IfOp, (condition,), types, regions=[Region(yes), Region(no)]).results)


def copied_row(
    row: LoopBuilder, at: Sequence[SSAValue], n: SSAValue, operands: Sequence[SSAValue], buffers: Sequence[SSAValue]
) -> list[SSAValue]:
    """The `n` elements of one row of every operand, in the buffers."""

    def copy(inner: LoopBuilder, k: list[SSAValue], into: list[SSAValue]) -> list[SSAValue]:
        place = [*at, *k]
        return [inner.store(inner.load(x, place), y, place) for x, y in zip(operands, into)]

    return row.loops([n], list(buffers), copy)
