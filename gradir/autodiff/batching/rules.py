"""How each op works on many lanes at once: `rule(lanes, op, operands, on)`, the operands with `on[k]` true have the lanes in front.

Most ops are themselves with one more dimension: pointwise ones need nothing, others count their dimensions from one. An op without a
rule here is expanded if it is a composite, and else runs in a loop over the lanes (`sweep`): slower, never wrong. Plugins add rules by
`batches`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from xdsl.ir import Operation, SSAValue

from gradir.autodiff.batching.lanes import Lanes, moved, next_dim, with_first
from gradir.dialects import nd
from gradir.dialects.nd.shape import TO_END
from gradir.dialects.types import element_of, i64_array, rank_of, shape_of, tensor

BatchRule: TypeAlias = "Callable[[Lanes, Any, list[SSAValue], list[bool]], list[SSAValue] | None]"
"""The results, all with lanes; None when the rule does not cover this case."""

BATCH: dict[type[Operation], BatchRule] = {}


def batches(*kinds: type[Operation]) -> Callable[[BatchRule], BatchRule]:
    """Register the batching rule of ops."""

    def register(rule: BatchRule) -> BatchRule:
        BATCH.update(dict.fromkeys(kinds, rule))
        return rule

    return register


def spread(lanes: Lanes, operands: Sequence[SSAValue], on: Sequence[bool]) -> list[SSAValue]:
    """All operands with lanes."""
    return [v if flag else lanes.spread(v) for v, flag in zip(operands, on)]


def kinds(lanes: Lanes, op: Operation) -> list[Any]:
    """The result types with lanes."""
    return [lanes.lanes(r.type) for r in op.results]


_POINTWISE = [
    op
    for family in ("elementwise", "mathematics", "complex", "special", "activation")
    for op in nd.FAMILIES[family]
    if all(name not in ("dims", "dim") for name in op.get_irdl_definition().properties)
]


@batches(*_POINTWISE, nd.BitcastConvertOp, nd.ReducePrecisionOp, nd.NextAfterOp, nd.ReshapeOp, nd.GeluOp)
def pointwise(lanes: Lanes, op: Operation, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """Element by element: the same op."""
    return lanes.again(op, spread(lanes, operands, on), kinds(lanes, op))


@batches(nd.CholeskyOp, nd.TriangularSolveOp, nd.LuOp, nd.QrOp, nd.EighOp, nd.SvdOp, nd.FftOp, nd.IfftOp, nd.RfftOp, nd.IrfftOp)
def stacked(lanes: Lanes, op: Operation, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """These ops are about the last dimensions: more in front are a batch already."""
    return lanes.again(op, spread(lanes, operands, on), kinds(lanes, op))


@batches(*(op for op in nd.FAMILIES["reduction"] if "dims" in op.get_irdl_definition().properties))
@batches(nd.ReverseOp, nd.VarianceOp, nd.NormOp)
def along_dims(lanes: Lanes, op: Any, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """`dims` count from one."""
    return lanes.again(op, operands, kinds(lanes, op), {"dims": moved(op.numbers("dims"))})


@batches(*nd.FAMILIES["cumulative"], nd.ArgmaxOp, nd.ArgminOp, nd.SoftmaxOp, nd.LogSoftmaxOp, nd.LogsumexpOp)
@batches(nd.SortOp, nd.TopKOp, nd.TakeAlongAxisOp, nd.ConcatenateOp, nd.SplitOp)
def along_dim(lanes: Lanes, op: Any, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """`dim` counts from one."""
    return lanes.again(op, spread(lanes, operands, on), kinds(lanes, op), {"dim": next_dim(op.number("dim"))})


@batches(nd.TransposeOp)
def transpose(lanes: Lanes, op: nd.TransposeOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """Lanes stay in front."""
    return lanes.again(op, operands, kinds(lanes, op), {"perm": i64_array((0, *(p + 1 for p in op.numbers("perm"))))})


@batches(nd.BroadcastOp)
def broadcast(lanes: Lanes, op: nd.BroadcastOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue] | None:
    """Lanes stay in front; run-time sizes are the same for all lanes."""
    if any(on[1:]):
        return None
    return [lanes.t.broadcast(operands[0], lanes.lanes(op.result.type), (0, *(d + 1 for d in op.numbers("dims"))))]


@batches(nd.SliceOp)
def slice_(lanes: Lanes, op: nd.SliceOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """All lanes."""
    limit = lanes.n if isinstance(lanes.n, int) else TO_END
    properties = {
        "start": with_first(0, op.numbers("start")),
        "limit": with_first(limit, op.numbers("limit")),
        "stride": with_first(1, op.numbers("stride")),
    }
    return lanes.again(op, operands, kinds(lanes, op), properties)


@batches(nd.PadOp)
def pad(lanes: Lanes, op: nd.PadOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue] | None:
    """No padding between lanes; one value for all."""
    if on[1]:
        return None
    properties = {name: with_first(0, op.numbers(name)) for name in ("low", "high", "interior")}
    return lanes.again(op, operands, kinds(lanes, op), properties)


@batches(nd.ReduceWindowOp)
def reduce_window(lanes: Lanes, op: nd.ReduceWindowOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """A window covers one lane."""
    return lanes.again(op, operands, kinds(lanes, op), _windows(op))


@batches(nd.SelectAndScatterOp)
def select_and_scatter(lanes: Lanes, op: nd.SelectAndScatterOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """A window covers one lane."""
    return lanes.again(op, spread(lanes, operands, on), kinds(lanes, op), _windows(op))


def _windows(op: Any) -> dict[str, Any]:
    found = {name: with_first(1, op.numbers(name)) for name in ("window", "strides", "dilations") if name in op.properties}
    return {**found, "padding": i64_array((0, 0, *op.numbers("padding")))}


@batches(nd.DotGeneralOp)
def dot_general(lanes: Lanes, op: nd.DotGeneralOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """Lanes of both sides are a batch dimension; lanes of one side are a free dimension, brought to the front."""
    names = ("lhs_batch", "rhs_batch", "lhs_contract", "rhs_contract")
    dims = {name: op.numbers(name) for name in names}
    shifted = {name: moved(dims[name]) if on[name.startswith("rhs")] else i64_array(dims[name]) for name in names}
    if all(on):
        both = {name: i64_array((0, *(d + 1 for d in dims[name]))) if name.endswith("batch") else shifted[name] for name in names}
        return lanes.again(op, operands, kinds(lanes, op), both)
    batch = len(dims["lhs_batch"])
    free = rank_of(op.lhs) - batch - len(dims["lhs_contract"])
    at = batch if on[0] else batch + free
    shape = list(shape_of(op.result))
    shape.insert(at, lanes.n)
    (found,) = lanes.again(op, operands, [tensor(element_of(op.result), shape)], shifted)
    return [lanes.to_front(found, at)]


@batches(nd.ConvGeneralOp)
def conv_general(lanes: Lanes, op: nd.ConvGeneralOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue] | None:
    """Lanes of the images join their batch; lanes of the filters join their outputs; of both, they are feature groups."""
    groups = op.number("feature_groups")
    if op.number("batch_groups") != 1 or not isinstance(lanes.n, int) or not isinstance(shape_of(op.lhs)[0], int):
        return None
    n, element = lanes.n, element_of(op.result)
    batch, *inner, features = shape_of(op.result)
    assert isinstance(batch, int) and isinstance(features, int)
    lhs, rhs = operands
    rank = rank_of(op.lhs)
    if not on[1]:
        (found,) = lanes.again(op, [lanes.merged(lhs, 0), rhs], [tensor(element, (n * batch, *inner, features))])
        return [lanes.divided(found, 0, n, batch)]
    if not on[0] and groups != 1:
        lhs = lanes.spread(lhs)
    filters = lanes.merged(lanes.from_front(rhs, rank - 1), rank - 1)
    wide = [tensor(element, (batch, *inner, n * features))]
    if not on[0] and groups == 1:
        (found,) = lanes.again(op, [lhs, filters], wide)
    else:
        images = lanes.merged(lanes.from_front(lhs, rank - 1), rank - 1)
        (found,) = lanes.again(op, [images, filters], wide, {"feature_groups": next_dim(n * groups - 1)})
    return [lanes.to_front(lanes.divided(found, rank - 1, n, features), rank - 1)]
