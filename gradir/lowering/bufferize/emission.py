"""Writes the buffer form of one function from its plan: straight-line ops and the copies that remain. Control flow is in `emit_control`.

Walks the tensor form once; each op becomes its buffer form, on the memory that `memory` provides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import SymbolRefAttr, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue

from gradir.dialects.types import groups_of, ints, segments
from gradir.dialects.upstream import arith, func, linalg, memref, tensor
from gradir.ir.builder import Builder
from gradir.lowering.bufferize.buffers import Slot
from gradir.lowering.bufferize.contents import LINALG, captured_tensors, reads_outputs
from gradir.lowering.bufferize.layouts import MemRef, memref_of, type_of
from gradir.lowering.bufferize.memory import INDEX, CallSite, Memory, with_shape
from gradir.lowering.bufferize.places import Place


class Emitter(Memory):
    """Rules for ops without regions of their own control flow."""

    rules: ClassVar[Mapping[type[Operation], Callable[[Any, Any], None]]] = {}
    terminators: ClassVar[Mapping[type[Operation], Callable[[Any, Any], Callable[[], None]]]] = {}

    def run(self) -> Block:
        """The body of the function in buffer form."""
        self.ops(self.contents.body)
        self.sizes.finish(self.block)
        return self.block

    # -- ops

    def ops(self, block: Block) -> None:
        """Emit the ops of `block` into the current one."""
        outer = self.passing
        self.passing = []
        for op in block.ops:
            self.builder.loc = op.location
            for buffer in self.born.get(op, ()):
                self.create(buffer)
            last = op is block.last_op
            if not last:
                self._op(op)
                self._free(op)
        terminator = cast("Operation", block.last_op)
        self.finish(terminator)
        self.passing = outer

    def finish(self, terminator: Operation) -> None:
        """Copies of what the block hands on, the end of its buffers, then its terminator."""
        emit = self.terminators[type(terminator)](self, terminator)
        self._free(terminator)
        for memory in self.passing:
            self.builder(memref.DeallocOp, [memory])
        emit()

    def _free(self, op: Operation) -> None:
        for buffer in self.dies.get(op, ()):
            if buffer in self.memory:
                self.builder(memref.DeallocOp, [self.memory[buffer]])

    def nested(self, old: Block, new: Block) -> None:
        """Emit `old` into `new`."""
        outer = self.builder
        self.builder = Builder(new, outer.loc)
        self.ops(old)
        self.builder = outer

    def _op(self, op: Operation) -> None:
        rule = self.rules.get(type(op))
        if rule is not None:
            rule(self, op)
        elif isinstance(op, LINALG):
            self._linalg(op)
        else:
            self._plain_op(op)

    def _plain_op(self, op: Operation) -> None:
        operands = [self.scalar(v) for v in op.operands]
        new = self.builder.op(type(op), operands, [r.type for r in op.results], op.properties, attributes=op.attributes)
        for old, result in zip(op.results, new.results):
            self.scalars[old] = result
            result.name_hint = old.name_hint

    def _nothing(self, op: Operation) -> None:
        pass

    def _constant(self, op: arith.ConstantOp) -> None:
        if not isinstance(op.result.type, TensorType):
            self._plain_op(op)
            return
        type_ = cast("MemRef", memref_of(op.result.type))
        name = self.module.constant(op.value, type_, op.location).sym_name.data
        new = self.builder(memref.GetGlobalOp, (), [type_], {"name": SymbolRefAttr(name)})
        self.places[new] = frozenset((Place(name),))
        self.memrefs[op.result] = new

    def _extract_slice(self, op: tensor.ExtractSliceOp) -> None:
        if not self._unwritten(op.source):
            self.memrefs[op.result] = self.subview(self.at(op.source), op)

    def _unwritten(self, value: SSAValue) -> bool:
        content = self.contents.content(value)
        return content.empty and not content.reads

    def _collapse(self, op: tensor.CollapseShapeOp) -> None:
        if not self._unwritten(op.src):
            self.memrefs[op.result] = self.collapse(self.at(op.src), groups_of(op.reassociation))

    def _expand(self, op: tensor.ExpandShapeOp) -> None:
        if not self._unwritten(op.src):
            sizes = [self.scalar(v) for v in op.dynamic_output_shape]
            shape = ints(op.static_output_shape)
            self.memrefs[op.result] = self.expand(self.at(op.src), groups_of(op.reassociation), shape, sizes)

    def _cast(self, op: tensor.CastOp) -> None:
        if not self._unwritten(op.source):
            source = self.at(op.source)
            old = type_of(source)
            shape = cast("TensorType[Any]", op.dest.type).get_shape()
            self.memrefs[op.dest] = self.cast(source, with_shape(old, shape))

    def _dim(self, op: tensor.DimOp) -> None:
        self.scalars[op.result] = self.sizes.of_dim(op)

    def _extract(self, op: tensor.ExtractOp) -> None:
        indices = [self.scalar(v) for v in op.indices]
        self.scalars[op.result] = self.builder(memref.LoadOp, [self.at(op.tensor), *indices], [op.result.type])

    def _insert_slice(self, op: tensor.InsertSliceOp) -> None:
        result = self.contents.content(op.result)
        self.deliver(op.dest, result)
        memory = self.define(op.result)
        source = self.contents.view(op.source)
        if source.content.empty:
            return
        storage = source.content.buffer.storage if source.kind == "whole" and source.content.buffer is not None else None
        if not (isinstance(storage, Slot) and storage.insert is op):
            self.copy(self.at(op.source), self.subview(memory, op))

    def _insert(self, op: tensor.InsertOp) -> None:
        self.deliver(op.dest, self.contents.content(op.result))
        memory = self.define(op.result)
        self.builder(memref.StoreOp, [self.scalar(op.scalar), memory, *(self.scalar(v) for v in op.indices)])

    def _from_elements(self, op: tensor.FromElementsOp) -> None:
        memory = self.define(op.result)
        shape = type_of(memory).get_shape()
        constants = {n: self.index(n) for n in range(max(shape, default=0))}
        for number, value in enumerate(op.elements):
            indices: list[SSAValue] = []
            for size in reversed(shape):
                indices.insert(0, constants[number % size])
                number //= size
            self.builder(memref.StoreOp, [self.scalar(value), memory, *indices])

    def _splat(self, op: tensor.SplatOp) -> None:
        memory = self.define(op.result)
        self.builder(linalg.FillOp, [self.scalar(op.input), memory], (), {"operandSegmentSizes": segments(1, 1)})

    def _linalg(self, op: Any) -> None:
        inputs = [self.at(v) if isinstance(v.type, TensorType) else self.scalar(v) for v in op.inputs]
        for value, result, reads in zip(op.outputs, op.results, reads_outputs(op)):
            if reads:
                self.deliver(value, self.contents.content(result))
        captured = captured_tensors(op)
        outputs = [self.define(r) for r in op.results]
        regions = [self._body(region, captured) for region in list(op.regions)]
        self.builder.op(type(op), [*inputs, *outputs], (), op.properties, regions=regions, attributes=op.attributes)

    def _body(self, region: Region, captured: Sequence[SSAValue]) -> Region:
        """The body of a `linalg` op on the scalars and memrefs of the new function."""
        parent = region.parent
        if self.consume and parent is not None:
            new = parent.detach_region(region)
        else:
            new = Region()
            region.clone_into(new)
        tensors = set(captured)
        for op in list(new.walk()):
            for number, value in enumerate(op.operands):
                if value in self.scalars:
                    op.operands[number] = self.scalars[value]
            if isinstance(op, tensor.ExtractOp) and op.tensor in tensors:
                load = memref.LoadOp.create(operands=[self.at(op.tensor), *op.indices], result_types=[op.result.type], location=op.location)
                self._replace(op, load)
            elif isinstance(op, tensor.DimOp) and op.source in tensors:
                dim = memref.DimOp.create(operands=[self.at(op.source), op.index], result_types=[INDEX], location=op.location)
                self._replace(op, dim)
        return new

    def _replace(self, old: Operation, new: Operation) -> None:
        block = old.parent
        assert block is not None
        block.insert_op_before(new, old)
        old.results[0].replace_all_uses_with(new.results[0])
        old.detach()
        old.erase()

    def _call(self, op: func.CallOp) -> None:
        name = op.callee.root_reference.data
        facts = self.contents.kernels[name]
        first = len(op.operands) - facts.results
        inputs = [self.at(v) if isinstance(v.type, TensorType) else self.scalar(v) for v in op.operands[:first]]
        if facts.contiguous:
            inputs = [self.without_gaps(v) for v in inputs]
        for k, (value, result) in enumerate(zip(op.operands[first:], op.results)):
            if k in facts.updates:
                self.deliver(value, self.contents.content(result))
        operands = [*inputs, *(self.define(r) for r in op.results)]
        call = cast("func.CallOp", self.builder.op(func.CallOp, operands, (), op.properties, attributes=op.attributes))
        places = tuple(self.places.get(v, frozenset()) for v in operands)
        self.module.calls.append(CallSite(call, name, places))

    def _return(self, op: func.ReturnOp) -> Callable[[], None]:
        for value, output in zip(op.operands, self.contents.outputs):
            view = self.contents.view(value)
            there = view.kind != "part" and view.content.buffer is not None and view.content.buffer is output.buffer
            if not there and not view.content.empty:
                self.copy(self.at(value), self.outputs[self.contents.outputs.index(output)])
        return lambda: self._end(func.ReturnOp, ())

    def _end(self, kind: type[Operation], operands: Sequence[SSAValue]) -> None:
        self.builder.op(kind, operands)


RULES: dict[type[Operation], Callable[[Any, Any], None]] = {
    tensor.EmptyOp: Emitter._nothing,
    arith.ConstantOp: Emitter._constant,
    tensor.ExtractSliceOp: Emitter._extract_slice,
    tensor.CollapseShapeOp: Emitter._collapse,
    tensor.ExpandShapeOp: Emitter._expand,
    tensor.CastOp: Emitter._cast,
    tensor.DimOp: Emitter._dim,
    tensor.ExtractOp: Emitter._extract,
    tensor.InsertSliceOp: Emitter._insert_slice,
    tensor.InsertOp: Emitter._insert,
    tensor.FromElementsOp: Emitter._from_elements,
    tensor.SplatOp: Emitter._splat,
    func.CallOp: Emitter._call,
}
TERMINATORS: dict[type[Operation], Callable[[Any, Any], Callable[[], None]]] = {func.ReturnOp: Emitter._return}
"""They emit the copies that a block's end needs; the function they return emits the terminator."""
