"""`scf.for` in reverse: residuals go into stacks indexed by the iteration, the backward loop runs them from the end.

    %hT, %S = scf.for %i ... iter_args(%h = %h0, %s = %empty) { ...; %s2 = nd.update_at %h into %s[%t] }
    %dh, %dW = scf.for %k = 0 to T iter_args(%c = %dhT, %dw = %zero) { %h = nd.index_at %S[T-1-k]; ... }

A carried value and its successor that are both read share one stack of T+1 entries.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, TensorType, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.core import OpResult

from gradir.autodiff.activity import free_in_block
from gradir.autodiff.reverse.cotangents import Cotangents, accumulator_type
from gradir.autodiff.reverse.residuals import plan, redo, substitute
from gradir.autodiff.reverse.sweep import Sweep, Unit, structured
from gradir.autodiff.tensors import INDEX, TensorBuilder
from gradir.dialects import nd
from gradir.dialects.types import shape_of, tensor
from gradir.dialects.upstream import arith, scf, tensor as upstream_tensor
from gradir.ir.builder import Builder
from gradir.ir.passes import error_at
from gradir.ir.structure import block_of


def constant_index(value: SSAValue) -> int | None:
    """The integer behind an index value, if it is a constant."""
    if isinstance(value, OpResult) and isinstance(value.op, arith.ConstantOp) and isinstance(value.op.value, IntegerAttr):
        return value.op.value.value.data
    return None


class Indices:
    """Index arithmetic with constants folded as it is written."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def constant(self, n: int) -> SSAValue:
        return self.builder(arith.ConstantOp, [], [INDEX], {"value": IntegerAttr(n, INDEX)})

    def _binary(self, kind: type[Operation], x: SSAValue, y: SSAValue) -> SSAValue:
        return self.builder(kind, [x, y], [INDEX], {"overflowFlags": arith.IntegerOverflowAttr("none")})

    def add(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return x if constant_index(y) == 0 else self._binary(arith.AddiOp, x, y)

    def sub(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return x if constant_index(y) == 0 else self._binary(arith.SubiOp, x, y)

    def mul(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return x if constant_index(y) == 1 else self._binary(arith.MuliOp, x, y)

    def ceil_div(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return x if constant_index(y) == 1 else self.builder(arith.CeilDivSIOp, [x, y], [INDEX])

    def max0(self, x: SSAValue) -> SSAValue:
        return self.builder(arith.MaxSIOp, [x, self.constant(0)], [INDEX])


@dataclass(frozen=True)
class Trips:
    """How often the loop runs: the number where it is known, else a size symbol; always an index value."""

    size: int | str
    value: SSAValue
    lower: SSAValue
    step: SSAValue

    def position(self, at: Indices, induction: SSAValue) -> SSAValue:
        """Iteration number, from 0, of an induction value."""
        shifted = at.sub(induction, self.lower)
        return shifted if constant_index(self.step) == 1 else at.builder(arith.DivSIOp, [shifted, self.step], [INDEX])

    def induction(self, at: Indices, position: SSAValue) -> SSAValue:
        return at.add(at.mul(position, self.step), self.lower)


def count_trips(sweep: Sweep, lower: SSAValue, upper: SSAValue, step: SSAValue) -> Trips:
    """The trip count, computed as far out as its bounds allow, so that outer loops can stack what it sizes."""
    known = [constant_index(v) for v in (lower, upper, step)]
    home = sweep
    varying = [v for v, k in zip((lower, upper, step), known) if k is None]
    while home.parent is not None and all(block_of(v) is not home.block for v in varying):
        home = home.parent
    at = Indices(home.builder)
    lower, upper, step = (v if k is None else at.constant(k) for v, k in zip((lower, upper, step), known))
    lo, hi, by = known
    if lo is not None and hi is not None and by is not None:
        n = max(0, -(-(hi - lo) // by))
        return Trips(n, at.constant(n), lower, step)
    trips = at.ceil_div(at.max0(at.sub(upper, lower)), step)
    return Trips(bind_size(sweep.unit, home.builder, trips), trips, lower, step)


def bind_size(unit: Unit, builder: Builder, value: SSAValue) -> str:
    """Give a run-time size a name of its own."""
    name = unit.program.fresh_symbol()
    builder.op(nd.BindOp, [value], [], {"sym": StringAttr(name)})
    unit.bound[name] = builder.block
    return name


@dataclass
class Stack:
    """Saved values: `arg` of iteration t at t, `successor` (the yielded value) at t+1 when the stack is shared."""

    element: Attribute
    length: int | str
    length_value: SSAValue
    carried: int | None = None
    arg: SSAValue | None = None
    value: SSAValue | None = None


def stackable(kind: Attribute) -> TensorType:
    """The tensor type under which a residual of type `kind` is stacked."""
    if isinstance(kind, TensorType):
        return kind
    return tensor(i64 if isinstance(kind, IndexType) else kind, ())


def to_stackable(builder: Builder, value: SSAValue) -> SSAValue:
    if isinstance(value.type, TensorType):
        return value
    if isinstance(value.type, IndexType):
        value = builder(arith.IndexCastOp, [value], [i64])
    return builder(upstream_tensor.FromElementsOp, [value], [tensor(value.type, ())])


def from_stackable(builder: Builder, value: SSAValue, kind: Attribute) -> SSAValue:
    if isinstance(kind, TensorType):
        return value
    assert isinstance(value.type, TensorType)
    scalar = builder(upstream_tensor.ExtractOp, [value], [value.type.element_type])
    return builder(arith.IndexCastOp, [scalar], [kind]) if isinstance(kind, IndexType) else scalar


@structured(scf.ForOp)
def forward_for(sweep: Sweep, op: scf.ForOp) -> None:
    """Copy the loop with its stacks; record the loop that runs backwards."""
    unit = sweep.unit
    lower, upper, step, *inits = (sweep.value(v) for v in op.operands)
    trips = count_trips(sweep, lower, upper, step)
    body = op.body.block
    forward = Block(arg_types=[a.type for a in body.args])
    unit.bind(body.args, forward.args)
    inner = sweep.child(forward)
    yields = inner.forward(body)
    on = [k for k, (a, r) in enumerate(zip(body.args[1:], op.results)) if a in unit.activity or r in unit.activity]
    read = [*free_in_block(forward), *(y for y in yields if block_of(y) is not forward)]
    captured = list(dict.fromkeys(v for v in read if v in unit.active))

    backward = Block(arg_types=[INDEX, *(body.args[1 + k].type for k in on), *(accumulator_type(v.type) for v in captured)])
    cts = Cotangents(Builder(backward, op.location), unit.active)
    for v, arg in zip(captured, backward.args[1 + len(on) :]):
        cts.set(v, arg)
    for k, arg in zip(on, backward.args[1:]):
        cts.add(yields[k], arg)
    cts.run(inner.tape)
    carried = [cts.get_or_zeros(forward.args[1 + k]) for k in on]
    cts.builder.op(scf.YieldOp, [*carried, *(cts.accumulator(v) for v in captured)])

    residuals = plan(forward, backward, lambda v: v is forward.args[0])
    stacks = _push(sweep, op, forward, inner, yields, inits, residuals.saved, trips)
    loop = sweep.builder.op(
        scf.ForOp,
        [lower, upper, step, *inits, *(s.value for s in stacks if s.value is not None)],
        [a.type for a in forward.args[1:]],
        regions=[Region(forward)],
    )
    unit.bind(op.results, loop.results)
    results = loop.results[: len(inits)]
    for k in on:
        unit.active.add(results[k])
    for stack, result in zip(stacks, loop.results[len(inits) :]):
        stack.value = result

    def reverse(outer: Cotangents) -> None:
        if all(outer.get(results[k]) is None for k in on) and not captured:
            return
        outer.builder.loc = op.location
        _pop(backward, forward, yields, stacks, residuals.saved, residuals.redo, trips, op)
        at = Indices(outer.builder)
        starts = [outer.get_or_zeros(results[k]) for k in on] + [outer.accumulator(v) for v in captured]
        new = outer.builder.op(
            scf.ForOp,
            [at.constant(0), trips.value, at.constant(1), *starts],
            [v.type for v in starts],
            regions=[Region(backward)],
        )
        for v, ct in zip(captured, new.results[len(on) :]):
            outer.set(v, ct)
        for k, ct in zip(on, new.results):
            outer.add(inits[k], ct)

    sweep.tape.append(reverse)


def _push(
    sweep: Sweep,
    op: scf.ForOp,
    forward: Block,
    inner: Sweep,
    yields: list[SSAValue],
    inits: list[SSAValue],
    saved: list[SSAValue],
    trips: Trips,
) -> list[Stack]:
    """Add one stack per residual (one per carried value and its successor) and terminate the forward body."""
    unit, at = sweep.unit, Indices(inner.builder)
    inner.builder.loc = op.location
    stacks: list[Stack] = []
    position = trips.position(at, forward.args[0]) if saved else None
    after = None
    pushed: list[SSAValue] = []
    carried_args = list(forward.args[1:])
    covered: set[SSAValue] = set()
    for value in saved:
        if value in covered:
            continue
        check_size(unit, op, value, forward)
        kind = stackable(value.type)
        k = next((k for k, a in enumerate(carried_args) if value in (a, yields[k]) and a in saved and yields[k] in saved), None)
        if k is not None:
            stack = _shared_stack(sweep, kind, trips, inits[k], k)
            covered.update((carried_args[k], yields[k]))
        else:
            stack = Stack(kind, trips.size, trips.value)
            stack.value = _empty(sweep.builder, stack)
            covered.add(value)
        assert stack.value is not None
        stack.arg = forward.insert_arg(stack.value.type, len(forward.args))
        t = TensorBuilder(inner.builder)
        assert position is not None
        if stack.carried is not None:
            after = after if after is not None else at.add(position, at.constant(1))
            pushed.append(t.update_at(to_stackable(inner.builder, yields[stack.carried]), stack.arg, after))
        else:
            pushed.append(t.update_at(to_stackable(inner.builder, value), stack.arg, position))
        stacks.append(stack)
    inner.builder.op(scf.YieldOp, [*yields, *pushed])
    return stacks


def _shared_stack(sweep: Sweep, kind: TensorType, trips: Trips, init: SSAValue, carried: int) -> Stack:
    """A stack of T+1 entries that starts with the initial value."""
    at = Indices(sweep.builder)
    if isinstance(trips.size, int):
        length, value = trips.size + 1, at.constant(trips.size + 1)
    else:
        value = at.add(trips.value, at.constant(1))
        length = bind_size(sweep.unit, sweep.builder, value)
    stack = Stack(kind, length, value, carried)
    t = TensorBuilder(sweep.builder)
    stack.value = t.update_at(to_stackable(sweep.builder, init), _empty(sweep.builder, stack), at.constant(0))
    return stack


def _empty(builder: Builder, stack: Stack) -> SSAValue:
    kind = stack.element
    assert isinstance(kind, TensorType)
    sizes: list[SSAValue] = [] if isinstance(stack.length, int) else [stack.length_value]
    sizes += TensorBuilder(builder).sizes(shape_of(kind))
    return builder(nd.EmptyOp, sizes, [tensor(kind.element_type, (stack.length, *shape_of(kind)))])


def check_size(unit: Unit, op: Operation, value: SSAValue, inside: Block) -> None:
    """A value whose size is known only inside the loop has another size in each iteration: no stack can hold it."""
    if not isinstance(value.type, TensorType):
        return
    for name in shape_of(value.type):
        block = unit.bound.get(name) if isinstance(name, str) else None
        while block is not None and block is not inside:
            block = block.parent_block()
        if block is inside:
            raise error_at(
                op,
                f"a residual of the inner loop has the run-time size {name!r}, which changes from one outer iteration to the next",
                part="autodiff",
                code="AD007",
                expected="inner loop bounds that do not depend on the outer loop",
                found=f"a value of type {value.type}",
                hint="give the inner loop bounds that are computed outside, and mask the rest",
            )


def _pop(
    backward: Block,
    forward: Block,
    yields: list[SSAValue],
    stacks: list[Stack],
    saved: list[SSAValue],
    redone: list[Operation],
    trips: Trips,
    op: scf.ForOp,
) -> None:
    """Prefix the backward body with the residuals of iteration T-1-k and let it read them."""
    prefix = Block()
    builder = Builder(prefix, op.location)
    at, t = Indices(builder), TensorBuilder(builder)
    position = at.sub(at.sub(trips.value, at.constant(1)), backward.args[0])
    values: dict[SSAValue, SSAValue] = {forward.args[0]: trips.induction(at, position)}
    plain = iter(
        v for v in saved if not any(s.carried is not None and v in (forward.args[1 + s.carried], yields[s.carried]) for s in stacks)
    )
    for stack in stacks:
        assert stack.value is not None
        if stack.carried is None:
            value = next(plain)
            values[value] = from_stackable(builder, t.index_at(stack.value, position), value.type)
            continue
        arg, successor = forward.args[1 + stack.carried], yields[stack.carried]
        values[successor] = from_stackable(builder, t.index_at(stack.value, at.add(position, at.constant(1))), successor.type)
        values[arg] = from_stackable(builder, t.index_at(stack.value, position), arg.type)
    redo(builder, redone, values)
    substitute(backward, values)
    first = backward.first_op
    assert first is not None
    for new in list(prefix.ops):
        new.detach()
        backward.insert_op_before(new, first)
