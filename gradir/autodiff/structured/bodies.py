"""The scalar body of a loop nest, backwards and forwards: the body runs again, then its ops in reverse, by the rules of scalars.

The sweeps of whole functions do the work: a body is a block of ops with a terminator, branches included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineMap

from gradir.autodiff.activity import Activity, free_in_block
from gradir.autodiff.reverse.cotangents import Cotangents
from gradir.autodiff.reverse.sweep import Sweep, Unit
from gradir.autodiff.structured.kinds import Extremum, is_contraction
from gradir.autodiff.tensors import TensorBuilder, is_differentiable
from gradir.dialects.nests import Nest
from gradir.ir.builder import Builder


@dataclass(frozen=True)
class More:
    """One more input of the derivative's nest: a tensor over the points, read through `map`."""

    value: SSAValue
    map: AffineMap

    @property
    def element(self) -> Attribute:
        kind = self.value.type
        return kind.element_type if isinstance(kind, TensorType) else kind


@dataclass(frozen=True)
class Copy:
    """A body that ran again in `block`: arguments (those of the nest, then one for each `More`), what it yields, how it goes back."""

    block: Block
    builder: Builder
    yields: list[SSAValue]
    given: list[SSAValue]
    sweep: Sweep
    unit: Unit
    nest: Nest

    def new(self, value: SSAValue) -> SSAValue:
        """The copy of a value of the body."""
        return self.unit.values.get(value, value)


def captured_floats(nest: Nest) -> list[SSAValue]:
    """Scalars from outside that the body reads and that may carry derivatives."""
    return [v for v in free_in_block(nest.body) if is_differentiable(v.type) and not isinstance(v.type, TensorType)]


def run_again(unit: Unit, nest: Nest, active: set[SSAValue], reads_outputs: Sequence[bool], more: Sequence[More], at: Builder) -> Copy:
    """The body in a block of its own. `active`: operands and captured values with derivatives; outputs count where `reads_outputs`."""
    count = len(nest.inputs)
    arguments = nest.body.args
    varied: list[SSAValue] = [v for v in captured_floats(nest) if v in active]
    for k, (value, argument) in enumerate(zip(nest.operands, arguments)):
        if value in active and is_differentiable(argument.type) and (k < count or reads_outputs[k - count]):
            varied.append(argument)
    last = nest.body.last_op
    assert last is not None
    activity = Activity.of_body(nest.body, varied, [is_differentiable(v.type) for v in last.operands], unit.program.resolve)
    own = Unit(unit.program, activity, unit.request)
    block = Block(arg_types=[*(a.type for a in arguments), *(m.element for m in more)])
    own.bind(arguments, block.args)
    own.active.update(v for v in varied if v not in set(arguments))
    sweep = Sweep(own, block)
    sweep.builder.loc = at.loc
    yields = sweep.forward(nest.body)
    return Copy(block, sweep.builder, yields, list(block.args[len(arguments) :]), sweep, own, nest)


def wins(t: TensorBuilder, copy: Copy, kind: Extremum, result: SSAValue) -> SSAValue:
    """Whether the term of this point is the extremum: equal to it, or a NaN where it is one."""
    return wins_over(t, copy.new(kind.term), result)


def wins_over(t: TensorBuilder, term: SSAValue, result: SSAValue) -> SSAValue:
    """Whether the two are equal, or both NaN."""
    both_nan = t.logical_and(t.is_nan(term), t.is_nan(result))
    return t.logical_or(t.compare("eq", term, result), both_nan)


def cotangents_of(copy: Copy) -> Cotangents:
    """An empty set of cotangents for the copied body; products are plain in a contraction."""
    return Cotangents(copy.builder, copy.unit.active, strong=not is_contraction(copy.nest))
