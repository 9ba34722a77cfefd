"""Folds whose combiner is a region: reduce, windows, select and scatter. Meaning: docs/numerics.md, "Reductions and composites".

An unknown combiner is obeyed as written: from the initial value, which is combined exactly once and first, elements join from the right in
index order, in their own type. The folds that compilers know (`nd.reduce_sum`, `nd.reduce_window`, ..) are ops of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, ClassVar, Self

from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, region_def, result_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from gradir.dialects.nd.base import I64_ARRAY, TENSOR, emit, new
from gradir.dialects.nd.checks import check_at_least, check_dims, check_element, check_length, check_same_types, check_shape
from gradir.dialects.nd.comparison import SelectOp
from gradir.dialects.nd.convolution import window_count, window_shape
from gradir.dialects.nd.creation import ConstantOp
from gradir.dialects.nd.elementwise import AndOp, NotOp, OrOp
from gradir.dialects.nd.indexing import DynamicSliceOp, DynamicUpdateSliceOp, IndexAtOp
from gradir.dialects.nd.regions import RegionOp, create, parse_body, print_body
from gradir.dialects.nd.shape import PadOp, ReshapeOp, SliceOp, TransposeOp
from gradir.dialects.nd.spelled_out import INDEX, counted, lifted, spread
from gradir.dialects.text import Clause, fill_defaults, parse_clauses, parse_operands, parse_tensors, print_clauses, resolve
from gradir.dialects.types import Dim, element_of, i64_array, rank_of, shape_of, static_shape, tensor
from gradir.dialects.upstream import arith, tensor as tensors

if TYPE_CHECKING:
    from gradir.ir.builder import Builder


class Fold(RegionOp):
    """n operands and n initial values of rank 0, folded together by `(%acc.., %element..)`."""

    FAMILY: ClassVar[str] = "region_reduction"

    arguments = var_operand_def(TENSOR)
    combiner = region_def()
    outputs = var_result_def(TENSOR)

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        """What is folded."""
        return tuple(self.operands[: len(self.outputs)])

    @property
    def starts(self) -> tuple[SSAValue, ...]:
        """The initial values."""
        return tuple(self.operands[len(self.outputs) :])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parse_operands(parser)
        parser.parse_keyword("init")
        operands += parse_operands(parser)
        given = parse_clauses(parser, cls.CLAUSES)
        parser.parse_keyword("by")
        region = parse_body(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        values = resolve(parser, operands, parse_tensors(parser), position)
        parser.parse_punctuation("->")
        types = parse_tensors(parser)
        properties = fill_defaults(given, cls.CLAUSES, rank_of(values[0]))
        return cls.create(operands=values, result_types=types, properties=properties, regions=[region], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.inputs, printer.print_operand)
        printer.print_string(" init ")
        printer.print_list(self.starts, printer.print_operand)
        print_clauses(self, printer, self.CLAUSES, rank_of(self.operands[0]))
        printer.print_string(" by ")
        print_body(printer, self.combiner)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list(self.value_types, printer.print_attribute)
        printer.print_string(" -> ")
        printer.print_list([result.type for result in self.results], printer.print_attribute)

    def check_operands(self) -> None:
        """n operands of one shape, n initial values of their element types, a combiner of both."""
        count = len(self.outputs)
        if not count or len(self.operands) != 2 * count:
            self.fail(f"{count} results need {count} operands and as many initial values, found {len(self.operands)}")
        for k, (value, start) in enumerate(zip(self.inputs, self.starts)):
            check_element(self, f"operand {k}", value, "any")
            check_shape(self, shape_of(self.inputs[0]), value, f"operand {k}")
            if start.type != tensor(element_of(value)):
                self.fail(f"initial value {k} must have type {tensor(element_of(value))}, found {start.type}")
        elements = [element_of(value) for value in self.inputs]
        self.scalar_code(self.combiner, "combiner", [*elements, *elements], elements)

    def check_results(self, shape: Sequence[Dim]) -> None:
        """All results have that shape and the operands' element types."""
        for k, (value, result) in enumerate(zip(self.inputs, self.outputs)):
            check_shape(self, shape, result, f"result {k}")
            if element_of(result) != element_of(value):
                self.fail(f"element types differ: result {k} has {element_of(result)}, operand {k} has {element_of(value)}")


@irdl_op_definition
class ReduceOp(Fold):
    """`acc = starts; acc = combiner(acc, operands[k])` for k over `dims` in row-major order, for each position of the others.

    operands [A..] of one shape, starts rank 0, results without `dims`. A combiner that is one of the known folds is better spelt
    `nd.reduce_sum`, `nd.reduce_max`, ..: those may regroup. StableHLO: reduce. JAX: lax.reduce.
    """

    name = "nd.reduce"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dims", "dims"),)

    dims = prop_def(I64_ARRAY)

    def verify_(self) -> None:
        self.check_operands()
        shape, dims = shape_of(self.inputs[0]), self.numbers("dims")
        check_dims(self, "dims", dims, len(shape), "operand 0")
        self.check_results([n for d, n in enumerate(shape) if d not in dims])

    @classmethod
    def make(cls, inputs: Sequence[SSAValue], starts: Sequence[SSAValue], dims: Sequence[int], combiner: Region) -> Self:
        """All `inputs` folded together over `dims`."""
        shape = [n for d, n in enumerate(shape_of(inputs[0])) if d not in dims]
        types = [tensor(element_of(value), shape) for value in inputs]
        return create(cls, [*inputs, *starts], types, {"dims": i64_array(dims)}, [combiner])

    def spelled_out(self, builder: Builder) -> list[SSAValue]:
        """A loop over the reduced positions, for all others at once; sizes must be static."""
        shape, dims = static_shape(self.inputs[0]), sorted(self.numbers("dims"))
        kept = [d for d in range(len(shape)) if d not in dims]
        rest = tuple(shape[d] for d in kept)
        trips = prod(shape[d] for d in dims)
        lines = [emit(builder, ReshapeOp.make(emit(builder, TransposeOp.make(x, [*dims, *kept])), [trips, *rest])) for x in self.inputs]

        def step(inner: Builder, k: SSAValue, state: list[SSAValue]) -> Sequence[SSAValue]:
            return lifted(inner, self.combiner.block, [*state, *(emit(inner, IndexAtOp.make(x, k, 0)) for x in lines)], rest)

        return counted(builder, trips, [spread(builder, start, rest) for start in self.starts], step)


@irdl_op_definition
class ReduceWindowGeneralOp(Fold):
    """`acc = starts; acc = combiner(acc, p[i * strides + w * dilations])` for w over the window in row-major order, for every window i.

    p is the operand with `base_dilations - 1` elements put between neighbours and `padding` (low, high per dimension, may be negative)
    around it; all of these hold the initial value. Per dimension `(padded - (window - 1) * dilation - 1) // stride + 1` windows.
    StableHLO: reduce_window. The known folds without base dilation are `nd.reduce_window`.
    """

    name = "nd.reduce_window_general"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (
        Clause("window", "window"),
        Clause("strides", "strides", optional=True, fill=1, count="rank"),
        Clause("padding", "padding", optional=True, count="padding"),
        Clause("dilations", "dilations", optional=True, fill=1, count="rank"),
        Clause("base_dilations", "base_dilations", optional=True, fill=1, count="rank"),
    )

    window = prop_def(I64_ARRAY)
    strides = prop_def(I64_ARRAY)
    padding = prop_def(I64_ARRAY)
    dilations = prop_def(I64_ARRAY)
    base_dilations = prop_def(I64_ARRAY)

    def verify_(self) -> None:
        self.check_operands()
        rank = rank_of(self.inputs[0])
        for prop in ("window", "strides", "dilations", "base_dilations"):
            check_length(self, prop, self.numbers(prop), rank, "one per dimension of the operand")
            check_at_least(self, prop, self.numbers(prop), 1)
        check_length(self, "padding", self.numbers("padding"), 2 * rank, "low and high per dimension of the operand")
        self.check_results(self.result_shape())

    def result_shape(self) -> tuple[Dim, ...]:
        """One element per window."""
        names = ("window", "strides", "padding", "dilations", "base_dilations")
        return _windows(shape_of(self.inputs[0]), *(self.numbers(name) for name in names))

    @classmethod
    def make(
        cls,
        inputs: Sequence[SSAValue],
        starts: Sequence[SSAValue],
        combiner: Region,
        window: Sequence[int],
        *,
        strides: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        base_dilations: Sequence[int] | None = None,
    ) -> Self:
        """Every sequence has one number per dimension (padding: two)."""
        ones = (1,) * rank_of(inputs[0])
        strides, dilations, base = strides or ones, dilations or ones, base_dilations or ones
        padding = padding or (0,) * (2 * len(ones))
        shape = _windows(shape_of(inputs[0]), window, strides, padding, dilations, base)
        properties: dict[str, Attribute] = {
            "window": i64_array(window),
            "strides": i64_array(strides),
            "padding": i64_array(padding),
            "dilations": i64_array(dilations),
            "base_dilations": i64_array(base),
        }
        types = [tensor(element_of(value), shape) for value in inputs]
        return create(cls, [*inputs, *starts], types, properties, [combiner])

    def spelled_out(self, builder: Builder) -> list[SSAValue]:
        """A loop over the positions in the window, for all windows at once; sizes must be static."""
        window, strides, dilations = (self.numbers(name) for name in ("window", "strides", "dilations"))
        edges, gaps = self.numbers("padding"), [n - 1 for n in self.numbers("base_dilations")]
        shape = static_shape(self.outputs[0])
        padded = [emit(builder, PadOp.make(x, s, edges[0::2], edges[1::2], gaps)) for x, s in zip(self.inputs, self.starts)]
        reach = [(n - 1) * s + 1 if n else 0 for n, s in zip(shape, strides)]
        zeros = [0] * len(shape)

        def step(inner: Builder, k: SSAValue, state: list[SSAValue]) -> Sequence[SSAValue]:
            starts = _starts(inner, k, window, dilations)
            taken = [emit(inner, DynamicSliceOp.make(x, starts, reach)) for x in padded]
            items = [emit(inner, SliceOp.make(x, zeros, reach, strides)) for x in taken]
            return lifted(inner, self.combiner.block, [*state, *items], shape)

        return counted(builder, prod(window), [spread(builder, start, shape) for start in self.starts], step)


def _positions(builder: Builder, k: SSAValue, sizes: Sequence[int]) -> list[SSAValue]:
    """The indices of row-major position k in a box of these sizes."""
    found: list[SSAValue] = []
    for d, size in enumerate(sizes):
        place = builder(arith.DivUIOp, (k, _index(builder, prod(sizes[d + 1 :]))), (INDEX,))
        found.append(builder(arith.RemUIOp, (place, _index(builder, size)), (INDEX,)))
    return found


def _index(builder: Builder, value: int) -> SSAValue:
    return builder(arith.ConstantOp, (), (INDEX,), {"value": IntegerAttr(value, INDEX)})


def _tensor(builder: Builder, value: SSAValue, element: Attribute) -> SSAValue:
    """A scalar as a tensor of rank 0."""
    return builder(tensors.FromElementsOp, (value,), (tensor(element),))


def _starts(builder: Builder, k: SSAValue, window: Sequence[int], dilations: Sequence[int]) -> list[SSAValue]:
    """Where position number k of the window begins along each dimension, as rank-0 tensors."""

    found: list[SSAValue] = []
    for place, step in zip(_positions(builder, k, window), dilations):
        at = builder(arith.MuliOp, (place, _index(builder, step)), (INDEX,))
        found.append(_tensor(builder, builder(arith.IndexCastOp, (at,), (i64,)), i64))
    return found


def _windows(
    shape: Sequence[Dim],
    window: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilations: Sequence[int],
    base: Sequence[int],
) -> tuple[Dim, ...]:
    return tuple(
        window_count(n, window[d], strides[d], padding[2 * d], padding[2 * d + 1], dilations[d], base[d]) for d, n in enumerate(shape)
    )


@irdl_op_definition
class SelectAndScatterGeneralOp(RegionOp):
    """`result = start; result[p] = scatter(result[p], source[w])` for windows w in row-major order, p the place that `select` chooses in w.

    In each window the elements of the operand pass in row-major order: the first is chosen, a later one replaces it where
    `select(chosen, later)` is false. A window that sees no element of the operand adds nothing. operand and result [A..], source one
    element per window, start rank 0. With GE and add this is `nd.select_and_scatter`. StableHLO: select_and_scatter.
    """

    name = "nd.select_and_scatter_general"
    FAMILY: ClassVar[str] = "region_reduction"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (
        Clause("window", "window"),
        Clause("strides", "strides", optional=True, fill=1, count="rank"),
        Clause("padding", "padding", optional=True, count="padding"),
    )

    operand = operand_def(TENSOR)
    source = operand_def(TENSOR)
    start = operand_def(TENSOR)
    window = prop_def(I64_ARRAY)
    strides = prop_def(I64_ARRAY)
    padding = prop_def(I64_ARRAY)
    select = region_def()
    scatter = region_def()
    result = result_def(TENSOR)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parse_operands(parser)
        given = parse_clauses(parser, cls.CLAUSES)
        parser.parse_keyword("select")
        select = parse_body(parser)
        parser.parse_keyword("scatter")
        scatter = parse_body(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        values = resolve(parser, operands, parse_tensors(parser), position)
        properties = fill_defaults(given, cls.CLAUSES, rank_of(values[0]))
        return cls.create(
            operands=values, result_types=[values[0].type], properties=properties, regions=[select, scatter], attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_operand)
        print_clauses(self, printer, self.CLAUSES, rank_of(self.operand))
        printer.print_string(" select ")
        print_body(printer, self.select)
        printer.print_string(" scatter ")
        print_body(printer, self.scatter)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list(self.value_types, printer.print_attribute)

    def verify_(self) -> None:
        rank, shape = rank_of(self.operand), shape_of(self.operand)
        check_element(self, "operand", self.operand, "any")
        for prop in ("window", "strides"):
            check_length(self, prop, self.numbers(prop), rank, "one per dimension of the operand")
            check_at_least(self, prop, self.numbers(prop), 1)
        check_length(self, "padding", self.numbers("padding"), 2 * rank, "low and high per dimension of the operand")
        check_same_types(self, ("operand", "result"), (self.operand, self.result))
        windows = window_shape(shape, self.numbers("window"), self.numbers("strides"), self.numbers("padding"), (1,) * rank)
        check_shape(self, windows, self.source, "source")
        element = element_of(self.operand)
        if element_of(self.source) != element or self.start.type != tensor(element):
            self.fail(f"source and start must have element type {element}, found {element_of(self.source)} and {self.start.type}")
        self.scalar_code(self.select, "select", [element, element], [i1])
        self.scalar_code(self.scatter, "scatter", [element, element], [element])

    @classmethod
    def make(
        cls,
        operand: SSAValue,
        source: SSAValue,
        start: SSAValue,
        select: Region,
        scatter: Region,
        window: Sequence[int],
        *,
        strides: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
    ) -> Self:
        """`source` has one element per window."""
        rank = rank_of(operand)
        properties: dict[str, Attribute] = {
            "window": i64_array(window),
            "strides": i64_array(strides or (1,) * rank),
            "padding": i64_array(padding or (0,) * (2 * rank)),
        }
        op = new(cls, (operand, source, start), operand.type, properties)
        op.add_region(select)
        op.add_region(scatter)
        return op

    def spelled_out(self, builder: Builder) -> list[SSAValue]:
        """A loop over windows around a loop over their positions, on the flattened operand; sizes must be static."""
        shape, windows, window = static_shape(self.operand), static_shape(self.source), self.numbers("window")
        strides, low = self.numbers("strides"), self.numbers("padding")[0::2]
        volume = prod(shape)
        if not volume or 0 in windows:
            return [spread(builder, self.start, shape)]
        flat = emit(builder, ReshapeOp.make(self.operand, [volume]))
        source = emit(builder, ReshapeOp.make(self.source, [prod(windows)]))
        nothing = [emit(builder, ConstantOp.splat(0, tensor(kind))) for kind in (i1, element_of(self.operand), i64)]

        def one(outer: Builder, w: SSAValue, state: list[SSAValue]) -> Sequence[SSAValue]:
            firsts = _positions(outer, w, windows)

            def visit(inner: Builder, o: SSAValue, best: list[SSAValue]) -> Sequence[SSAValue]:
                inside, place = _place(inner, firsts, _positions(inner, o, window), (strides, low, shape))
                found, value, chosen = best
                x = _element(inner, flat, place)
                (stays,) = lifted(inner, self.select.block, [value, x], ())
                stays = emit(inner, AndOp.make(found, stays))
                takes = emit(inner, AndOp.make(inside, emit(inner, NotOp.make(stays))))
                picked = [emit(inner, SelectOp.make(takes, new, old)) for new, old in ((x, value), (place, chosen))]
                return [emit(inner, OrOp.make(found, inside)), *picked]

            found, _, place = counted(outer, prod(window), nothing, visit)
            old = _element(outer, state[0], place)
            (new,) = lifted(outer, self.scatter.block, [old, emit(outer, IndexAtOp.make(source, w, 0))], ())
            kept = emit(outer, ReshapeOp.make(emit(outer, SelectOp.make(found, new, old)), [1]))
            return [emit(outer, DynamicUpdateSliceOp.make(state[0], kept, [place]))]

        (result,) = counted(builder, prod(windows), [spread(builder, self.start, (volume,))], one)
        return [emit(builder, ReshapeOp.make(result, shape))]


Geometry = tuple[Sequence[int], Sequence[int], Sequence[int]]
"""Strides of windows, padding in front, sizes of the operand."""


def _place(builder: Builder, windows: Sequence[SSAValue], offsets: Sequence[SSAValue], geometry: Geometry) -> tuple[SSAValue, SSAValue]:
    """(is that position of the window in the operand, where in the flattened operand), as tensors of rank 0."""
    inside = builder(arith.ConstantOp, (), (i1,), {"value": IntegerAttr(-1, i1)})
    flat = _index(builder, 0)
    for w, o, stride, low, size in zip(windows, offsets, *geometry):
        at = builder(arith.AddiOp, (builder(arith.MuliOp, (w, _index(builder, stride)), (INDEX,)), o), (INDEX,))
        at = builder(arith.SubiOp, (at, _index(builder, low)), (INDEX,))
        unsigned = {"predicate": arith.integer_predicate("ult")}  # < 0 is beyond
        below = builder(arith.CmpiOp, (at, _index(builder, size)), (i1,), unsigned)
        inside = builder(arith.AndIOp, (inside, below), (i1,))
        flat = builder(arith.AddiOp, (builder(arith.MuliOp, (flat, _index(builder, size)), (INDEX,)), at), (INDEX,))
    return _tensor(builder, inside, i1), _tensor(builder, builder(arith.IndexCastOp, (flat,), (i64,)), i64)


def _element(builder: Builder, flat: SSAValue, place: SSAValue) -> SSAValue:
    """One element of a vector, of rank 0."""
    return emit(builder, ReshapeOp.make(emit(builder, DynamicSliceOp.make(flat, [place], [1])), []))


OPS = (ReduceOp, ReduceWindowGeneralOp, SelectAndScatterGeneralOp)
