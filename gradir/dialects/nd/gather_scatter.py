"""Gather and scatter of windows with StableHLO's dimension numbers. Meaning: docs/numerics.md, "Shape, indexing, order".

The index vectors stand along the last dimension of `indices`; component k of a vector is the start along dimension `map[k]` of the operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Region, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_region_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum

from gradir.dialects.nd.base import I64, I64_ARRAY, TENSOR, NdOp, emit, new
from gradir.dialects.nd.checks import check_at_least, check_dims, check_element, check_length, check_same_element, check_shape
from gradir.dialects.nd.composite import Composite
from gradir.dialects.nd.creation import ConstantOp
from gradir.dialects.nd.regions import RegionOp, create, parse_body, print_body
from gradir.dialects.nd.shape import ReshapeOp
from gradir.dialects.text import (
    Clause,
    fill_defaults,
    parse_clauses,
    parse_operands,
    parse_tensors,
    print_clauses,
    resolve,
)
from gradir.dialects.types import Dim, Shape, element_of, i64_array, i64_attr, rank_of, shape_of, shape_text, sizes_agree, tensor

if TYPE_CHECKING:
    from gradir.ir.builder import Builder


@dataclass(frozen=True)
class Numbers:
    """Which dimension of an operand of rank `rank` a window walks, which an index vector starts, which a batch of indices runs along.

    `window`: dimensions of the result (updates) that walk the window, in the order of the operand's dimensions that are neither in
    `dropped` (size 1 in the window, absent from the result) nor in `operand_batch`. `indices_batch[k]` is the dimension of the
    indices that runs along dimension `operand_batch[k]`. `batch`: the other dimensions of the result, one per dimension of the
    indices but the last.
    """

    rank: int
    window: tuple[int, ...]
    dropped: tuple[int, ...]
    operand_batch: tuple[int, ...]
    indices_batch: tuple[int, ...]
    map: tuple[int, ...]
    batch: tuple[int, ...]

    @property
    def walked(self) -> tuple[int, ...]:
        """The operand's dimension that each dimension of `window` walks."""
        return tuple(d for d in range(self.rank) if d not in self.dropped and d not in self.operand_batch)

    def batch_of(self, k: int) -> int:
        """The dimension of the result along which `operand_batch[k]` runs."""
        return self.batch[self.indices_batch[k]]


def _check(op: NdOp, n: Numbers, operand: Shape, indices: Shape, result_rank: int, what: str, names: tuple[str, str]) -> None:
    """The numbers fit the shapes; `names` are those of `window` and `dropped`."""
    window, dropped = names
    if not indices:
        op.fail("indices must have at least one dimension, the last one holds the index vectors; found rank 0")
    check_dims(op, window, n.window, result_rank, what)
    if list(n.window) != sorted(n.window):
        op.fail(f"{window} must be sorted, found {list(n.window)}")
    check_dims(op, dropped, n.dropped, n.rank)
    check_dims(op, "operand_batch", n.operand_batch, n.rank)
    check_dims(op, "indices_batch", n.indices_batch, len(indices) - 1, "the indices without their last dimension")
    check_dims(op, "map", n.map, n.rank)
    for prop, dims in ((dropped, n.dropped), ("map", n.map)):
        for d in dims:
            if d in n.operand_batch:
                op.fail(f"dimension {d} of the operand is in operand_batch and in {prop}")
    if len(n.operand_batch) != len(n.indices_batch):
        op.fail(f"operand_batch has {len(n.operand_batch)} dimensions, indices_batch has {len(n.indices_batch)}: they run together")
    for d, e in zip(n.operand_batch, n.indices_batch):
        if not sizes_agree(operand[d], indices[e]):
            op.fail(f"dimension {d} of the operand has size {operand[d]}, dimension {e} of the indices, which runs along it, {indices[e]}")
    if not sizes_agree(indices[-1], len(n.map)):
        op.fail(f"the index vectors have {indices[-1]} components, map names {len(n.map)} dimensions")
    if len(n.window) != len(n.walked):
        op.fail(f"{window} has {len(n.window)} dimensions, the window walks {len(n.walked)} of the operand")
    if len(n.batch) != len(indices) - 1:
        op.fail(f"{what} has {len(n.batch)} dimensions besides {window}, the indices have {len(indices) - 1} besides their last")


@irdl_op_definition
class GatherGeneralOp(NdOp):
    """`result[b, o] = operand[s + o']`, s the start from index vector `indices[b]`, clamped so that a window of `sizes` fits.

    Dimensions `offset` of the result walk the window along the operand's dimensions that are neither `collapsed` nor `operand_batch`; b
    are its other dimensions. Dimension `map[k]` starts at `clamp(indices[b, k], 0, size - sizes[map[k]])`, others at 0; dimension
    `operand_batch[k]` is where b is along dimension `indices_batch[k]` of the indices. StableHLO: gather. ONNX: GatherND.
    """

    name = "nd.gather_general"
    FAMILY: ClassVar[str] = "gather_scatter"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (
        Clause("offset", "offset", optional=True),
        Clause("collapsed", "collapsed", optional=True),
        Clause("operand_batch", "operand_batch", optional=True),
        Clause("indices_batch", "indices_batch", optional=True),
        Clause("map", "map", optional=True),
        Clause("sizes", "sizes"),
    )
    TYPES: ClassVar[str] = "map"

    operand = operand_def(TENSOR)
    indices = operand_def(TENSOR)
    offset = prop_def(I64_ARRAY)
    collapsed = prop_def(I64_ARRAY)
    operand_batch = prop_def(I64_ARRAY)
    indices_batch = prop_def(I64_ARRAY)
    map = prop_def(I64_ARRAY)
    sizes = prop_def(I64_ARRAY)
    result = result_def(TENSOR)

    @property
    def dimensions(self) -> Numbers:
        """The dimension numbers."""
        offset = self.numbers("offset")
        batch = tuple(d for d in range(rank_of(self.result)) if d not in offset)
        collapsed, ob, ib = (self.numbers(p) for p in ("collapsed", "operand_batch", "indices_batch"))
        return Numbers(rank_of(self.operand), offset, collapsed, ob, ib, self.numbers("map"), batch)

    def verify_(self) -> None:
        shape, indices, sizes = shape_of(self.operand), shape_of(self.indices), self.numbers("sizes")
        check_element(self, "operand", self.operand, "any")
        check_element(self, "indices", self.indices, "integer")
        check_same_element(self, "result", self.result, "operand", self.operand)
        n = self.dimensions
        _check(self, n, shape, indices, rank_of(self.result), "the result", ("offset", "collapsed"))
        check_length(self, "sizes", sizes, n.rank, "one per dimension of the operand")
        check_at_least(self, "sizes", sizes, 0)
        for d, size in enumerate(sizes):
            total = shape[d]
            if isinstance(total, int) and size > total:
                self.fail(f"dim {d}: a window of {size} does not fit in {total}")
            if size != 1 and d in (*n.dropped, *n.operand_batch):
                self.fail(f"sizes[{d}] must be 1 in a collapsed or batch dimension, found {size}")
        check_shape(self, _result_shape(n, indices, sizes), self.result)

    @classmethod
    def make(
        cls,
        operand: SSAValue,
        indices: SSAValue,
        sizes: Sequence[int],
        *,
        offset: Sequence[int] = (),
        collapsed: Sequence[int] = (),
        operand_batch: Sequence[int] = (),
        indices_batch: Sequence[int] = (),
        map: Sequence[int] = (),
    ) -> Self:
        """One window of `sizes` per index vector (last dimension of `indices`)."""
        rank = len(shape_of(indices)) - 1 + len(offset)
        batch = tuple(d for d in range(rank) if d not in offset)
        n = Numbers(rank_of(operand), tuple(offset), tuple(collapsed), tuple(operand_batch), tuple(indices_batch), tuple(map), batch)
        properties: dict[str, Attribute] = {
            "offset": i64_array(offset),
            "collapsed": i64_array(collapsed),
            "operand_batch": i64_array(operand_batch),
            "indices_batch": i64_array(indices_batch),
            "map": i64_array(map),
            "sizes": i64_array(sizes),
        }
        return new(cls, (operand, indices), tensor(element_of(operand), _result_shape(n, shape_of(indices), sizes)), properties)


def _result_shape(n: Numbers, indices: Shape, sizes: Sequence[int]) -> tuple[Dim, ...]:
    window = dict(zip(n.window, (sizes[d] for d in n.walked)))
    batch = dict(zip(n.batch, indices[:-1]))
    return tuple(window[d] if d in window else batch.get(d) for d in range(len(n.window) + len(indices) - 1))


class Combiner(StrEnum):
    """How `nd.scatter_general` joins an update with what is there."""

    SET = "set"
    ADD = "add"
    MUL = "mul"
    MIN = "min"
    MAX = "max"
    REGION = "region"


@irdl_attr_definition
class CombinerAttr(EnumAttribute[Combiner], SpacedOpaqueSyntaxAttribute):
    """`#nd<combiner add>`"""

    name = "nd.combiner"


COMBINERS: dict[str, CombinerAttr] = {kind.value: CombinerAttr(kind) for kind in Combiner}


@irdl_op_definition
class ScatterGeneralOp(RegionOp):
    """`results = operands; results[s + o'] = combine(results[s + o'], updates[b, o])` for (b, o) in row-major order of the updates.

    Dimension numbers as in `nd.gather_general`: dimensions `window` of the updates walk the window along the operand's dimensions that
    are neither `inserted` nor `operand_batch`. Starts are not clamped: an element outside the operand is dropped, the rest of its window
    kept. `set` keeps the last update, `add` sums in f32 at least, `mul`, `min`, `max` in the operand's type; a region
    `(%olds.., %updates..)` of elements yields the new values of all operands. StableHLO: scatter. ONNX: ScatterND.
    """

    name = "nd.scatter_general"
    FAMILY: ClassVar[str] = "gather_scatter"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (
        Clause("window", "window", optional=True),
        Clause("inserted", "inserted", optional=True),
        Clause("operand_batch", "operand_batch", optional=True),
        Clause("indices_batch", "indices_batch", optional=True),
        Clause("map", "map", optional=True),
    )

    arguments = var_operand_def(TENSOR)
    kind = prop_def(CombinerAttr)
    window = prop_def(I64_ARRAY)
    inserted = prop_def(I64_ARRAY)
    operand_batch = prop_def(I64_ARRAY)
    indices_batch = prop_def(I64_ARRAY)
    map = prop_def(I64_ARRAY)
    combiner = opt_region_def()
    outputs = var_result_def(TENSOR)

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        """The operands that are updated."""
        return tuple(self.operands[: len(self.outputs)])

    @property
    def indices(self) -> SSAValue:
        """The index vectors."""
        return self.operands[len(self.outputs)]

    @property
    def updates(self) -> tuple[SSAValue, ...]:
        """The updates, one tensor per operand."""
        return tuple(self.operands[len(self.outputs) + 1 :])

    @property
    def combine(self) -> str:
        """set, add, mul, min, max or region."""
        return self.kind.data.value

    @property
    def dimensions(self) -> Numbers:
        """The dimension numbers."""
        window = self.numbers("window")
        batch = tuple(d for d in range(rank_of(self.updates[0])) if d not in window)
        inserted, ob, ib = (self.numbers(p) for p in ("inserted", "operand_batch", "indices_batch"))
        return Numbers(rank_of(self.operands[0]), window, inserted, ob, ib, self.numbers("map"), batch)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        kind = COMBINERS[parser.parse_str_enum(Combiner).value]
        parser.parse_punctuation(",")
        operands = parse_operands(parser)
        properties = {"kind": kind, **fill_defaults(parse_clauses(parser, cls.CLAUSES), cls.CLAUSES, 0)}
        regions = [parse_body(parser)] if parser.parse_optional_keyword("by") else []
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        values = resolve(parser, operands, parse_tensors(parser), position)
        parser.parse_punctuation("->")
        types = parse_tensors(parser)
        return cls.create(operands=values, result_types=types, properties=properties, regions=regions, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.combine}, ")
        printer.print_list(self.operands, printer.print_operand)
        print_clauses(self, printer, self.CLAUSES, 0)
        if self.combiner is not None:
            printer.print_string(" by ")
            print_body(printer, self.combiner)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list(self.value_types, printer.print_attribute)
        printer.print_string(" -> ")
        printer.print_list([result.type for result in self.results], printer.print_attribute)

    def verify_(self) -> None:
        count = len(self.outputs)
        if not count or len(self.operands) != 2 * count + 1:
            self.fail(f"expected n operands, the indices and n updates for n >= 1 results, found {len(self.operands)} and {count} results")
        shape, indices, updates = shape_of(self.inputs[0]), shape_of(self.indices), shape_of(self.updates[0])
        check_element(self, "indices", self.indices, "integer")
        n = self.dimensions
        _check(self, n, shape, indices, len(updates), "the updates", ("window", "inserted"))
        for k, (value, update, result) in enumerate(zip(self.inputs, self.updates, self.outputs)):
            kinds = {"set": "any", "region": "any", "add": "number or complex", "mul": "number or complex"}
            check_element(self, f"operand {k}", value, kinds.get(self.combine, "number"))
            check_same_element(self, f"updates {k}", update, f"operand {k}", value)
            check_shape(self, shape, value, f"operand {k}")
            check_shape(self, updates, update, f"updates {k}")
            if value.type != result.type:
                self.fail(f"types differ: operand {k} has {value.type}, result {k} has {result.type}")
        for d, e in zip(n.batch, range(len(indices) - 1)):
            if not sizes_agree(updates[d], indices[e]):
                self.fail(f"dimension {d} of the updates has size {updates[d]}, dimension {e} of the indices {indices[e]}")
        for d, e in zip(n.window, n.walked):
            size, total = updates[d], shape[e]
            if isinstance(size, int) and isinstance(total, int) and size > total:
                self.fail(f"a window of {size} along dimension {d} of the updates does not fit in {total}")
        if (self.combiner is not None) != (self.combine == "region"):
            wanted = "a region" if self.combine == "region" else "no region"
            self.fail(f"{self.combine} needs {wanted}, found {'none' if self.combiner is None else 'one'}")
        if self.combiner is not None:
            elements = [element_of(value) for value in self.inputs]
            self.scalar_code(self.combiner, "combiner", [*elements, *elements], elements)

    @classmethod
    def make(
        cls,
        kind: str,
        inputs: Sequence[SSAValue],
        indices: SSAValue,
        updates: Sequence[SSAValue],
        *,
        window: Sequence[int] = (),
        inserted: Sequence[int] = (),
        operand_batch: Sequence[int] = (),
        indices_batch: Sequence[int] = (),
        map: Sequence[int] = (),
        combiner: Region | None = None,
    ) -> Self:
        """`inputs` with `updates` combined into their windows; `kind` is set, add, mul, min, max or region."""
        properties: dict[str, Attribute] = {
            "kind": COMBINERS[kind],
            "window": i64_array(window),
            "inserted": i64_array(inserted),
            "operand_batch": i64_array(operand_batch),
            "indices_batch": i64_array(indices_batch),
            "map": i64_array(map),
        }
        regions = [] if combiner is None else [combiner]
        return create(cls, [*inputs, indices, *updates], [value.type for value in inputs], properties, regions)


@irdl_op_definition
class TakeAlongAxisOp(Composite):
    """`result[a, i, b] = operand[a, clamp(indices[a, i, b], 0, size - 1), b]` where the middle index is dimension `dim`.

    operand [A.., size, B..], indices [A.., I, B..] integers, result like these. numpy: take_along_axis. ONNX: GatherElements.
    """

    name = "nd.take_along_axis"
    FAMILY: ClassVar[str] = "gather_scatter"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dim", "dim", "int"),)
    TYPES: ClassVar[str] = "map"

    operand = operand_def(TENSOR)
    indices = operand_def(TENSOR)
    dim = prop_def(I64)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        dim, shape, indices = self.number("dim"), shape_of(self.operand), shape_of(self.indices)
        check_element(self, "operand", self.operand, "any")
        check_element(self, "indices", self.indices, "integer")
        check_dims(self, "dim", (dim,), len(shape))
        if len(indices) != len(shape):
            self.fail(f"ranks differ: operand has {len(shape)}, indices have {len(indices)}")
        expected = (*shape[:dim], indices[dim], *shape[dim + 1 :])
        check_shape(self, expected, self.indices, "indices")
        check_same_element(self, "result", self.result, "operand", self.operand)
        check_shape(self, expected, self.result)
        if shape[dim] == 0 and 0 not in expected:
            self.fail(f"dimension {dim} has size 0: no element to read for the {shape_text(expected)} elements of the result")

    @classmethod
    def make(cls, operand: SSAValue, indices: SSAValue, dim: int) -> Self:
        """One element of `operand` along `dim` per index."""
        return new(cls, (operand, indices), tensor(element_of(operand), shape_of(indices)), {"dim": i64_attr(dim)})

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        """A gather of single elements, all other dimensions being batches."""
        x, indices = operands
        dim, shape = self.number("dim"), shape_of(indices)
        others = [d for d in range(len(shape)) if d != dim]
        if 0 in shape:
            return [emit(builder, ConstantOp.splat(0, self.result.type))]
        made = GatherGeneralOp.make(
            x,
            _column(builder, indices),
            [1] * len(shape),
            collapsed=[dim],
            operand_batch=others,
            indices_batch=others,
            map=[dim],
        )
        return [emit(builder, made)]


def _column(builder: Builder, indices: SSAValue) -> SSAValue:
    """Indices as vectors of one component."""
    return emit(builder, ReshapeOp.make(indices, (*shape_of(indices), 1)))


OPS = (GatherGeneralOp, ScatterGeneralOp, TakeAlongAxisOp)
