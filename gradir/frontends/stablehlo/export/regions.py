"""Ops with code for single elements: sort, reduce, windows, scatter. Their regions are written op by op."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Region

from gradir.dialects import nd
from gradir.dialects.types import is_float, tensor
from gradir.frontends.stablehlo.export.windows import padding_text
from gradir.frontends.stablehlo.export.writer import ExportRule, Value, Values, Writer, i64s, kind_of


def _region(w: Writer, region: Region) -> str:
    types = [kind_of(argument.type) for argument in region.block.args]
    return w.region(types, lambda arguments: w.block(region.block, arguments))


def reduce(w: Writer, op: nd.ReduceOp, operands: Values) -> Values:
    """Folded from the left, as the region says."""
    results = [kind_of(result.type) for result in op.results]
    return w.op("stablehlo.reduce", operands, results, f"dimensions = {i64s(op.numbers('dims'))}", [_region(w, op.combiner)])


def reduce_window(w: Writer, op: nd.ReduceWindowGeneralOp, operands: Values) -> Values:
    """Every window, folded as the region says."""
    attributes = [
        f"window_dimensions = {i64s(op.numbers('window'))}",
        f"window_strides = {i64s(op.numbers('strides'))}",
        f"base_dilations = {i64s(op.numbers('base_dilations'))}",
        f"window_dilations = {i64s(op.numbers('dilations'))}",
        *([f"padding = {padding_text(op.numbers('padding'))}"] if operands[0].rank else []),
    ]
    results = [kind_of(result.type) for result in op.results]
    return w.op("stablehlo.reduce_window", operands, results, ", ".join(attributes), [_region(w, op.combiner)])


def select_and_scatter(w: Writer, op: nd.SelectAndScatterGeneralOp, operands: Values) -> Values:
    """The regions say which element of a window is chosen, and how what is sent there is combined."""
    attributes = [
        f"window_dimensions = {i64s(op.numbers('window'))}",
        f"window_strides = {i64s(op.numbers('strides'))}",
        *([f"padding = {padding_text(op.numbers('padding'))}"] if operands[0].rank else []),
    ]
    regions = [_region(w, op.select), _region(w, op.scatter)]
    return [w.one("stablehlo.select_and_scatter", operands, operands[0].type, ", ".join(attributes), regions)]


# -- sort


def sort(w: Writer, op: nd.SortOp, operands: Values) -> Values:
    """A comparator says what the attributes do, as JAX writes it."""
    if op.comparator is not None:
        comparator = _region(w, op.comparator)
    else:
        keys = op.number("keys")
        direction, total = "GT" if op.number("descending") else "LT", bool(op.number("total_order"))
        scalars = [tensor(x.element) for x in operands for _ in range(2)]
        comparator = w.region(scalars, lambda arguments: [_before(w, arguments[: 2 * keys], direction, total)])
    attributes = f"dimension = {op.number('dim')} : i64, is_stable = true"
    return w.op("stablehlo.sort", operands, [x.type for x in operands], attributes, [comparator])


def _before(w: Writer, pairs: Sequence[Value], direction: str, total: bool) -> Value:
    """`x0 < y0 or (x0 == y0 and (x1 < y1 or ..))`"""
    x, y, *rest = pairs
    kind = "TOTALORDER" if is_float(x.element) else ""
    if kind and not total:
        x, y = _one_nan(w, x), _one_nan(w, y)
    first = w.compare(direction, x, y, kind)
    if not rest:
        return first
    later = w.binary("stablehlo.and", w.compare("EQ", x, y, kind), _before(w, rest, direction, total))
    return w.binary("stablehlo.or", first, later)


def _one_nan(w: Writer, x: Value) -> Value:
    """The number with all NaNs made one, and -0 made +0."""
    zero, nan = w.constant(0, x.element), w.constant(np.nan, x.element)
    return w.select(w.compare("NE", x, x), nan, w.select(w.compare("EQ", x, zero), zero, x))


# -- gather and scatter


def gather(w: Writer, op: nd.GatherGeneralOp, operands: Values) -> Values:
    """The same dimension numbers."""
    names = ("offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims", "start_index_map")
    props = ("offset", "collapsed", "operand_batch", "indices_batch", "map")
    dims = ", ".join(f"{name} = {list(op.numbers(prop))}" for name, prop in zip(names, props))
    numbers = f"#stablehlo.gather<{dims}, index_vector_dim = {operands[1].rank - 1}>"
    attributes = f"dimension_numbers = {numbers}, slice_sizes = {i64s(op.numbers('sizes'))}, indices_are_sorted = false"
    return [w.one("stablehlo.gather", operands, kind_of(op.result.type), attributes)]


COMBINERS = {"add": "stablehlo.add", "mul": "stablehlo.multiply", "min": "stablehlo.minimum", "max": "stablehlo.maximum"}


def scatter(w: Writer, op: nd.ScatterGeneralOp, operands: Values) -> Values:
    """The same dimension numbers; the combiner as a region."""
    names = (
        "update_window_dims",
        "inserted_window_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
        "scatter_dims_to_operand_dims",
    )
    props = ("window", "inserted", "operand_batch", "indices_batch", "map")
    dims = ", ".join(f"{name} = {list(op.numbers(prop))}" for name, prop in zip(names, props))
    count = len(op.results)
    numbers = f"#stablehlo.scatter<{dims}, index_vector_dim = {operands[count].rank - 1}>"
    attributes = f"scatter_dimension_numbers = {numbers}, indices_are_sorted = false, unique_indices = false"
    kind = op.kind.data.value
    if op.combiner is not None:
        region = _region(w, op.combiner)
    elif kind in COMBINERS:
        region = w.applied(COMBINERS[kind], operands[0].element)
    else:
        scalars = [tensor(x.element) for x in operands[:count]]
        region = w.region([*scalars, *scalars], lambda arguments: arguments[count:])
    return w.op("stablehlo.scatter", operands, [x.type for x in operands[:count]], attributes, [region])


def barrier(w: Writer, op: nd.OptimizationBarrierOp, operands: Values) -> Values:
    """The operands, kept apart from what follows."""
    return w.op("stablehlo.optimization_barrier", operands, [x.type for x in operands])


RULES: dict[str, ExportRule] = {
    "nd.reduce": reduce,
    "nd.reduce_window_general": reduce_window,
    "nd.select_and_scatter_general": select_and_scatter,
    "nd.sort": sort,
    "nd.gather_general": gather,
    "nd.scatter_general": scatter,
    "nd.optimization_barrier": barrier,
}
