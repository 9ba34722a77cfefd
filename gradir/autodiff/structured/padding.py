"""`tensor.pad` in both modes: its padding value is yielded by a region, from outside."""

from __future__ import annotations

from xdsl.ir import Block, Operation, Region, SSAValue

from gradir.autodiff.activity import free_in_block
from gradir.autodiff.forward.sweep import STRUCTURED, ForwardSweep
from gradir.autodiff.reverse.cotangents import Cotangents
from gradir.autodiff.reverse.sweep import Sweep, clone, structured
from gradir.autodiff.structured.sums import total
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects.slices import Number, extract_slice, insert_slice, mixed, sizes_of
from gradir.dialects.types import element_of
from gradir.dialects.upstream import tensor
from gradir.errors import GradirError
from gradir.ir.builder import Builder
from gradir.ir.passes import error_at


def padding_value(op: tensor.PadOp) -> SSAValue:
    """What the region yields."""
    last = op.region.block.last_op
    assert last is not None
    return last.operands[0]


def computes_value(op: tensor.PadOp) -> bool:
    """Whether the region computes the value instead of yielding one from outside."""
    owner = padding_value(op).owner
    return owner is op.region.block or (isinstance(owner, Operation) and owner.parent is op.region.block)


def _not_from_outside(op: Operation, request: str) -> GradirError:
    return error_at(
        op,
        "no derivative by a padding value that is computed inside of the op",
        part="autodiff",
        code="AD001",
        expected="a value from outside",
        found=f"a region that computes it, while resolving {request}",
        hint="compute the value before tensor.pad",
    )


@structured(tensor.PadOp)
def reverse_pad(sweep: Sweep, op: tensor.PadOp) -> None:
    """The source takes the slice that it became, the padding value the sum of the rest."""
    new = sweep.copy(op)
    assert isinstance(new, tensor.PadOp)
    value, source = padding_value(new), new.source
    if computes_value(new) and any(v in sweep.unit.active for v in free_in_block(new.region.block)):
        raise _not_from_outside(op, sweep.unit.request)

    def reverse(cts: Cotangents) -> None:
        ct = cts.get(new.result)
        if ct is None:
            return
        cts.builder.loc = op.location
        t = cts.t
        low, sizes = mixed(new.static_low, new.low), sizes_of(t.builder, source)
        ones: list[Number] = [1] * len(sizes)
        if source in cts.active:
            part = extract_slice(t.builder, ct, low, sizes, ones)
            cts.add(source, part if part.type == source.type else t.builder(tensor.CastOp, [part], [source.type]))
        if value in cts.active:
            rest = insert_slice(t.builder, t.zeros_as(source, source.type), ct, low, sizes, ones)
            cts.add(value, t.convert(total(t, rest), element_of(ct)))

    sweep.tape.append(reverse)


def forward_pad(sweep: ForwardSweep, op: tensor.PadOp, builder: Builder) -> None:
    """The tangent of the source, padded with that of the value."""
    new = clone(op, sweep.values)
    assert isinstance(new, tensor.PadOp)
    builder.block.add_op(new)
    value = padding_value(new)
    if computes_value(new) and any(v in sweep.tangents for v in free_in_block(new.region.block)):
        raise _not_from_outside(op, sweep.request)
    t = TensorBuilder(builder)
    moved = sweep.tangents.get(value)
    fill = t.zeros(value.type) if moved is None else moved
    source = sweep.tangents.get(new.source)
    block = Block(arg_types=[a.type for a in new.region.block.args])
    Builder(block, op.location).op(tensor.YieldOp, [fill])
    operands = [t.zeros_as(new.source, new.source.type) if source is None else source, *new.operands[1:]]
    copy = builder.op(tensor.PadOp, operands, [new.result.type], new.properties, [Region(block)], new.attributes)
    sweep.set_tangent(new.result, copy.results[0])


STRUCTURED[tensor.PadOp] = forward_pad
