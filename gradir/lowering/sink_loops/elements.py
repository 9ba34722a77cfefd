"""A loop over tensors as a loop over numbers: what one element of the wanted result goes through.

Tensors of the wanted shape stand for their element at the same place, tensors without dimensions for their number. What comes from
outside of the loop becomes an input of the nest, a splat becomes a constant in its body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr, TensorType, i1
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from gradir.dialects.types import element_of, shape_of
from gradir.dialects.upstream import arith, linalg, scf, tensor as upstream_tensor
from gradir.ir.structure import is_inside

_PLAIN = ("arith", "math")


class NotElementwise(Exception):
    """The loop holds something that is not computed element by element."""


class Elements:
    """Builds `body`, the body of a nest over the shape of `kind`, with arguments for `inputs` (read by `maps`) and the result."""

    def __init__(self, kind: TensorType, loop: Operation) -> None:
        self.kind, self.shape, self.outer = kind, shape_of(kind), loop
        self.identity = AffineMap.identity(len(self.shape))
        self.body = Block(arg_types=[kind.element_type])
        self.block = self.body
        self.inputs: list[SSAValue] = []
        self.maps: list[AffineMapAttr] = []
        self.values: dict[SSAValue, SSAValue] = {}
        self.each: set[SSAValue] = set()
        """Numbers that stand for "is it so for any element?": what one element says."""
        self.all: set[SSAValue] = set()
        """Numbers that stand for "is it so for all elements?": not so is so for one of them."""
        self.own: SSAValue | None = None
        """What an element says about going on, in a loop that ends when no element goes on."""
        self.carried = 0
        self.empty: upstream_tensor.EmptyOp | None = None

    def sizes(self) -> list[SSAValue]:
        """The operands of a `tensor.empty` of the wanted type, outside of the loop."""
        if all(isinstance(size, int) for size in self.shape):
            return []
        if self.empty is None:
            raise NotElementwise("nothing tells the sizes of the result")
        return list(self.empty.operands)

    # values --------------------------------------------------------------------------------------------------------

    def _emit(self, op: Operation) -> Operation:
        self.block.add_op(op)
        return op

    def number(self, value: SSAValue, map: AffineMap | None = None) -> SSAValue:
        """The number that stands for `value` of the loop, read by `map` (a tensor: default is the same place)."""
        kind = value.type
        if not isinstance(kind, TensorType):
            return self.values.get(value, value) if not is_inside(value, self.outer) or value in self.values else self._missing()
        place = map if map is not None else (self.identity if shape_of(kind) else AffineMap(len(self.shape), 0, ()))
        if value in self.values:
            if place.results and place != self.identity:
                raise NotElementwise("another element is read than the one that is computed")
            return self.values[value]
        if is_inside(value, self.outer):
            self._missing()
        splat = _splat_of(value)
        if splat is not None:
            return self._at_start(arith.ConstantOp.create(result_types=[element_of(value)], properties={"value": splat}))
        return self._input(value, place)

    def _missing(self) -> SSAValue:
        raise NotElementwise("a value of the loop that no element stands for")

    def _at_start(self, op: Operation) -> SSAValue:
        first = self.body.first_op
        if first is None:
            self.body.add_op(op)
        else:
            self.body.insert_op_before(op, first)
        return op.results[0]

    def _input(self, value: SSAValue, place: AffineMap) -> SSAValue:
        attribute = AffineMapAttr(place)
        for k, (known, map) in enumerate(zip(self.inputs, self.maps)):
            if known is value and map == attribute:
                return self.body.args[k]
        self.inputs.append(value)
        self.maps.append(attribute)
        return self.body.insert_arg(element_of(value), len(self.inputs) - 1)

    # loops ---------------------------------------------------------------------------------------------------------

    def loop(self, loop: scf.ForOp | scf.WhileOp, wanted: int) -> SSAValue:
        """Emit the loop over numbers; the number of its result `wanted`."""
        self.carried += len(loop.results)
        results = self._for(loop) if isinstance(loop, scf.ForOp) else self._while(loop)
        return results[wanted]

    def _carry(self, kind: Attribute) -> Attribute:
        if isinstance(kind, TensorType) and shape_of(kind) not in ((), self.shape):
            raise NotElementwise("a tensor of another shape is carried")
        return element_of(kind) if isinstance(kind, TensorType) else kind

    def _for(self, loop: scf.ForOp) -> Sequence[SSAValue]:
        bounds = [self.number(v) for v in (loop.lb, loop.ub, loop.step)]
        inits = [self.number(v) for v in loop.iter_args]
        kinds = [self._carry(v.type) for v in loop.iter_args]
        source = loop.body.block
        block = self._region(source, [source.args[0].type, *kinds])
        return self._emit(
            scf.ForOp.create(operands=[*bounds, *inits], result_types=kinds, regions=[Region(block)], location=loop.location)
        ).results

    def _while(self, loop: scf.WhileOp) -> Sequence[SSAValue]:
        if loop is not self.outer:
            raise NotElementwise("a loop whose end depends on all elements, in another loop")
        inits = [self.number(v) for v in loop.arguments]
        before = self._region(loop.before_region.block, [self._carry(v.type) for v in loop.arguments])
        after = self._region(loop.after_region.block, [self._carry(v.type) for v in loop.results])
        condition = before.last_op
        assert isinstance(condition, scf.ConditionOp)
        own = self._conditions_of_elements(condition.operands[0])
        decides = all(map(_only_ends_the_loop, self.each)) and all(
            any(result in self.each for result in use.operation.results) for v in self.all for use in v.uses
        )
        if len(own) != 1 or not decides:
            raise NotElementwise("the loop does not go on as long as any element says so")
        (self.own,) = own
        kinds = [self._carry(r.type) for r in loop.results]
        regions = [Region(before), Region(after)]
        return self._emit(scf.WhileOp.create(operands=inits, result_types=kinds, regions=regions, location=loop.location)).results

    def _conditions_of_elements(self, value: SSAValue) -> list[SSAValue]:
        """The terms of the conjunction `value` that are conditions of single elements; the others are the same for all."""
        if value in self.each:
            return [value]
        return [v for o in value.owner.operands for v in self._conditions_of_elements(o)] if isinstance(value.owner, arith.AndIOp) else []

    def _region(self, source: Block, kinds: Sequence[Attribute]) -> Block:
        block = Block(arg_types=kinds)
        for old, new in zip(source.args, block.args):
            self.values[old], new.name_hint = new, old.name_hint
        outer, self.block = self.block, block
        for op in source.ops:
            self._op(op)
        self.block = outer
        return block

    # ops -----------------------------------------------------------------------------------------------------------

    def _op(self, op: Operation) -> None:
        match op:
            case linalg.GenericOp():
                self._generic(op)
            case linalg.FillOp() if len(op.results) == 1:
                self.values[op.results[0]] = self.number(op.operands[0])
            case upstream_tensor.EmptyOp():
                if shape_of(op.results[0]) == self.shape and not any(is_inside(v, self.outer) for v in op.operands):
                    self.empty = op
            case upstream_tensor.ExtractOp() if not shape_of(op.operands[0]):
                self.values[op.results[0]] = self.number(op.operands[0])
            case upstream_tensor.FromElementsOp() if not shape_of(op.results[0]):
                self.values[op.results[0]] = self.number(op.operands[0])
            case scf.ForOp():
                self.carried += len(op.results)
                self.values.update(zip(op.results, self._for(op)))
            case scf.YieldOp() | scf.ConditionOp():
                self._emit(type(op).create(operands=[self.number(v) for v in op.operands], location=op.location))
            case _ if op.name.split(".")[0] in _PLAIN and not op.regions:
                self._copy(op, {v: self.number(v) for v in op.operands})
            case _:
                raise NotElementwise(op.name)

    def _copy(self, op: Operation, numbers: Mapping[SSAValue, SSAValue]) -> None:
        new = op.clone(dict(numbers))
        new.location = op.location
        self._emit(new)
        self.values.update(zip(op.results, new.results))

    def _generic(self, op: linalg.GenericOp) -> None:
        if len(op.results) != 1:
            raise NotElementwise("a nest with several results")
        maps = [m.data for m in op.indexing_maps.data]
        if any(kind.data is linalg.IteratorType.REDUCTION for kind in op.iterator_types.data):
            self._any(op)
            return
        shape, block = shape_of(op.results[0]), op.body.block
        if shape not in ((), self.shape) or maps[-1] != AffineMap.identity(len(shape)) or block.args[-1].first_use is not None:
            raise NotElementwise("a nest over another space")
        numbers: dict[SSAValue, SSAValue] = {}
        for argument, operand, map in zip(block.args, op.operands, maps):
            if argument.first_use is not None:
                place = map if shape else AffineMap(len(self.shape), 0, map.results)
                numbers[argument] = self.number(operand, place)
        for inner in block.ops:
            if isinstance(inner, linalg.YieldOp):
                self.values[op.results[0]] = self._in(numbers, inner.operands[0])
            elif isinstance(inner, linalg.IndexOp):
                dim = IntegerAttr(inner.dim.value.data, inner.dim.type)
                new = linalg.IndexOp.create(result_types=[IndexType()], properties={"dim": dim}, location=inner.location)
                numbers[inner.results[0]] = self._at_start(new)
            elif inner.regions or inner.name.split(".")[0] not in _PLAIN:
                raise NotElementwise(inner.name)
            else:
                new = inner.clone({v: self._in(numbers, v) for v in inner.operands})
                new.location = inner.location
                numbers.update(zip(inner.results, self._emit(new).results))
                if isinstance(new, arith.XOrIOp) and self.all & set(new.operands) and any(_constant_of(v) for v in new.operands):
                    self.each.add(new.result)

    def _in(self, numbers: Mapping[SSAValue, SSAValue], value: SSAValue) -> SSAValue:
        return numbers[value] if value in numbers else self.number(value)

    def _any(self, op: linalg.GenericOp) -> None:
        """`any` or `all` of the elements: for one of them, what it says itself."""
        first, last = op.body.block.first_op, op.body.block.last_op
        assert first is not None and last is not None
        whole = element_of(op.results[0]) == i1 and not shape_of(op.results[0]) and len(op.inputs) == 1
        if not whole or shape_of(op.inputs[0]) != self.shape or op.indexing_maps.data[0].data != self.identity:
            raise NotElementwise("a reduction")
        plain = isinstance(first, arith.OrIOp | arith.AndIOp) and first.next_op is last and last.operands[0] is first.results[0]
        fill, neutral = op.outputs[0].owner, isinstance(first, arith.AndIOp)
        starts = isinstance(fill, linalg.FillOp) and bool(_constant_of(fill.operands[0])) is neutral
        if not (plain and starts and set(first.operands) == set(op.body.block.args)):
            raise NotElementwise("a reduction")
        constant = self._emit(arith.ConstantOp.create(result_types=[i1], properties={"value": IntegerAttr(neutral, i1)}))
        operands = [self.number(op.inputs[0]), constant.results[0]]
        says = self._emit(type(first).create(operands=operands, result_types=[i1], location=op.location)).results[0]
        self.values[op.results[0]] = says
        (self.all if neutral else self.each).add(says)


def _only_ends_the_loop(value: SSAValue) -> bool:
    """Whether nothing but the condition of a loop depends on `value`, and that as one term of a conjunction."""
    for use in value.uses:
        op = use.operation
        if not (isinstance(op, scf.ConditionOp) and use.index == 0) and not (
            isinstance(op, arith.AndIOp) and _only_ends_the_loop(op.results[0])
        ):
            return False
    return True


def _constant_of(value: SSAValue) -> int | None:
    owner = value.owner
    return owner.value.value.data if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr) else None


def _splat_of(value: SSAValue) -> Attribute | None:
    """The number that every element of `value` is, where its definition says so."""
    owner = value.owner
    if isinstance(owner, linalg.FillOp):
        source = owner.operands[0]
    elif (
        isinstance(owner, linalg.GenericOp)
        and not owner.inputs
        and all(k.data is linalg.IteratorType.PARALLEL for k in owner.iterator_types)
    ):
        last = owner.body.block.last_op
        assert last is not None
        source = last.operands[0]
    else:
        return None
    return source.owner.value if isinstance(source.owner, arith.ConstantOp) else None
