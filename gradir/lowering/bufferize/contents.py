"""What each tensor of a function holds, and who reads it.

Every tensor value is a `View` of one `Content` (`views.py`). A result of a loop is a view of the carried value at the loop's exit, what
`scf.condition` forwards is a view of what came in: only control flow that chooses between contents makes new ones (`scf.if`, loops).
Reads are collected per content, through all its views; where they happen on the timeline is what `ownership` decides by.

Relies on kernels being in destination-passing style, with facts about them in a table. No memory is chosen here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from gradir.dialects.upstream import arith, func, linalg, scf, tensor
from gradir.dialects.upstream.named import generic_form
from gradir.ir.passes import error_at
from gradir.ir.structure import single_block
from gradir.lowering.bufferize.slices import Slice, slice_of
from gradir.lowering.bufferize.timeline import Timeline
from gradir.lowering.bufferize.views import Content, KernelFacts, Origin, Read, Tensor, View

LINALG = (linalg.GenericOp, linalg.FillOp, linalg.CopyOp)


class Contents:
    """The analysis of one function: `views` of its tensor values, `contents` in program order.

    `destinations` is the number of trailing arguments that are destinations (of a kernel), `donated` are arguments that the caller gives
    away; `outputs` are the contents of the results' memory.
    """

    def __init__(
        self, function: func.FuncOp, kernels: Mapping[str, KernelFacts], destinations: int = 0, donated: frozenset[int] = frozenset()
    ) -> None:
        self.function = function
        self.kernels = kernels
        self.donated = donated
        self.body = single_block(function)
        self.timeline = Timeline(self.body)
        self.views: dict[SSAValue, View] = {}
        self.all: list[Content] = []
        self.slices: dict[Operation, Slice] = {}
        self.arguments: list[Content] = []
        self._origin = Origin(self.body, self.timeline.block_start[self.body])
        self.returned: list[SSAValue] = list(cast("Operation", self.body.last_op).operands)
        first_output = len(self.body.args) - destinations
        for index, argument in enumerate(self.body.args):
            if isinstance(argument.type, TensorType):
                owned = index >= first_output or index in donated
                content = self._define(argument, self._origin, owned=owned)
                if owned:
                    content.definitions.append((self._origin.position, cast("Operation", self.body.first_op)))
                self.arguments.append(content)
        if destinations:
            self.outputs = [self.content(a) for a in self.body.args[first_output:]]
        else:
            self.outputs = [Content(None, cast("Tensor", v.type), self._origin) for v in self.returned]
            self.all += self.outputs
        self._block(self.body)

    # -- questions

    def view(self, value: SSAValue) -> View:
        """The view that a tensor value is."""
        return self.views[value]

    def content(self, value: SSAValue) -> Content:
        """The content that a tensor value shows."""
        return self.views[value].content

    def whole(self, value: SSAValue) -> Content | None:
        """The content that `value` is all of (in its shape or another), unless nothing was ever written to it."""
        view = self.views[value]
        return view.content if view.kind != "part" and not view.content.empty else None

    def is_empty(self, value: SSAValue) -> bool:
        """True of a tensor whose elements nobody has written."""
        return self.views[value].content.empty

    # -- building

    def _define(self, value: SSAValue, origin: Origin, at: Operation | None = None, *, owned: bool = True, empty: bool = False) -> Content:
        content = Content(value, cast("Tensor", value.type), origin, owned, empty)
        if at is not None:
            content.definitions.append((self.timeline.late(at), at))
        self.views[value] = View(content, "whole", origin)
        self.all.append(content)
        return content

    def _result(self, value: SSAValue, op: Operation, *, owned: bool = True, empty: bool = False) -> Content:
        block = op.parent
        assert block is not None
        return self._define(value, Origin(block, self.timeline.late(op)), op, owned=owned, empty=empty)

    def _read(
        self, value: SSAValue, op: Operation, legal: Iterable[Content] = (), *, through: bool = False, position: int | None = None
    ) -> None:
        view = self.views.get(value)
        if view is None:
            raise error_at(
                op,
                "reads a tensor that bufferize does not know",
                part="graph",
                code="GR060",
                expected="a tensor that an op of level 2 made, or an argument",
                found=str(value.type),
            )
        at = self.timeline.late(op) if position is None else position
        view.content.reads.append(Read(op, at, view.origin, frozenset(legal), view.part, through))

    def _block(self, block: Block) -> None:
        for op in block.ops:
            rule = _RULES.get(type(op))
            if rule is not None:
                rule(self, op)
            elif isinstance(op, LINALG):
                self._linalg(op)
            elif any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results)):
                raise error_at(
                    op,
                    "has no form on buffers",
                    part="graph",
                    code="GR060",
                    expected="scf, func.call of kernels, linalg, and the tensor ops of level 2",
                    found=op.name,
                    hint=generic_form(op, "run convert-nd-to-linalg and outline-kernels first (`to-structured`)"),
                )
            elif op.regions:
                for region in op.regions:
                    if region.first_block is not None:
                        raise error_at(
                            op,
                            "has a region that bufferize does not know",
                            part="graph",
                            code="GR060",
                            expected="regions of scf and linalg",
                            found=op.name,
                        )

    def _empty(self, op: tensor.EmptyOp) -> None:
        self._result(op.tensor, op, empty=True)

    def _constant(self, op: arith.ConstantOp) -> None:
        if isinstance(op.result.type, TensorType):
            self._result(op.result, op, owned=False)

    def _reshape(self, op: tensor.CollapseShapeOp | tensor.ExpandShapeOp) -> None:
        view = self.views[op.src]
        whole = op.result.type == view.content.type
        kind = "part" if view.kind == "part" else "whole" if whole else "reshaped"
        self.views[op.result] = View(view.content, kind, view.origin, view.part)
        view.content.mentions.append(op)

    def _cast(self, op: tensor.CastOp) -> None:
        view = self.views[op.source]
        same = op.dest.type == op.source.type  # a part of a barrier: the value itself
        self.views[op.dest] = view if same else View(view.content, "part", view.origin, view.part)
        view.content.mentions.append(op)

    def _extract_slice(self, op: tensor.ExtractSliceOp) -> None:
        view = self.views[op.source]
        part = slice_of(op) if view.kind == "whole" else view.part
        self.views[op.result] = View(view.content, "part", view.origin, part)
        view.content.mentions.append(op)

    def _insert_slice(self, op: tensor.InsertSliceOp) -> None:
        self.slices[op] = slice_of(op)
        result = self._result(op.result, op)
        self._read(op.source, op)
        self._update(op.dest, op, result)

    def _insert(self, op: tensor.InsertOp) -> None:
        self._update(op.dest, op, self._result(op.result, op))

    def _update(self, destination: SSAValue, op: Operation, result: Content) -> None:
        """`op` makes `result` by changing elements of `destination`."""
        if self.is_empty(destination):
            self.content(destination).mentions.append(op)
        else:
            self._read(destination, op, [result], through=True)

    def _extract(self, op: tensor.ExtractOp) -> None:
        self._read(op.tensor, op)

    def _dim(self, op: tensor.DimOp) -> None:
        self.content(op.source).mentions.append(op)

    def _elements(self, op: tensor.FromElementsOp | tensor.SplatOp) -> None:
        self._result(op.result, op)

    def _linalg(self, op: Any) -> None:
        inputs, outputs = list(op.inputs), list(op.outputs)
        if not all(isinstance(v.type, TensorType) for v in outputs):
            raise error_at(op, "works on buffers already", part="graph", code="GR060", expected="tensors", found=str(outputs[0].type))
        for value in (*inputs, *captured_tensors(op)):
            if isinstance(value.type, TensorType):
                self._read(value, op)
        results = [self._result(r, op) for r in op.results]
        for value, result, reads in zip(outputs, results, reads_outputs(op)):
            if reads:
                self._update(value, op, result)
            else:
                self.content(value).mentions.append(op)

    def _call(self, op: func.CallOp) -> None:
        name = op.callee.root_reference.data
        facts = self.kernels.get(name)
        if facts is None:
            raise error_at(
                op,
                f"calls @{name}, which is not a kernel",
                part="graph",
                code="GR061",
                expected="a private function with the attribute gradir.kernel",
                found=f"@{name}",
                hint="run inline before convert-nd-to-linalg: functions cannot pass tensors to each other below level 2",
            )
        results = [self._result(r, op) for r in op.results]
        first = len(op.operands) - facts.results
        legal: dict[SSAValue, set[Content]] = {}
        for index, value in enumerate(op.operands[:first]):
            if isinstance(value.type, TensorType):
                allowed = {r for k, r in enumerate(results) if (index, k) in facts.in_place}
                legal[value] = legal[value] & allowed if value in legal else allowed
        merged: dict[Content, set[Content]] = {}
        for value, allowed in legal.items():
            content = self.content(value)
            whole = allowed if self.views[value].kind == "whole" else set[Content]()
            merged[content] = merged[content] & whole if content in merged else whole
        for value in legal:
            self._read(value, op, merged[self.content(value)])
        for k, (value, result) in enumerate(zip(op.operands[first:], results)):
            if k in facts.updates:
                self._update(value, op, result)
            else:
                self.content(value).mentions.append(op)

    # -- control flow

    def _for(self, op: scf.ForOp) -> None:
        body, time = op.body.block, self.timeline
        last = cast("Operation", body.last_op)
        sources: list[tuple[SSAValue, Content]] = []
        back: list[tuple[SSAValue, Content]] = []
        for initial, argument, result, again in zip(op.iter_args, body.args[1:], op.results, last.operands):
            if not isinstance(argument.type, TensorType):
                continue
            if again is argument:  # it never changes
                self.views[argument] = self.views[result] = self.views[initial]
                self.content(initial).mentions.append(op)
                continue
            carried = self._carried(argument, Origin(body, time.late(op)), op, last)
            carried.exit = Origin(cast("Block", op.parent), time.end[op])
            if result.first_use is not None:
                carried.spans.append((time.late(last), time.end[op]))
            self.views[result] = View(carried, "whole", carried.exit)
            sources.append((initial, carried))
            back.append((again, carried))
        self._join(sources, op)
        self._block(body)
        self._join(back, last)

    def _while(self, op: scf.WhileOp) -> None:
        before, after, time = op.before_region.block, op.after_region.block, self.timeline
        condition, last = cast("scf.ConditionOp", before.last_op), cast("Operation", after.last_op)
        arguments = [(a, v) for a, v in zip(before.args, op.arguments) if isinstance(a.type, TensorType)]
        carried = [self._carried(a, Origin(before, time.late(op)), op, last) for a, _ in arguments]
        self._join([(v, c) for (_, v), c in zip(arguments, carried)], op)
        self._block(before)
        exit_ = Origin(cast("Block", op.parent), time.end[op])
        copies: list[tuple[SSAValue, Content]] = []
        for value, argument, result in zip(condition.args, after.args, op.results):
            if not isinstance(argument.type, TensorType):
                continue
            view = self.views[value]
            owner = value.owner
            outside = time.lift(op, owner if isinstance(owner, Block) else cast("Block", owner.parent)) is not None
            if view.kind == "whole" and view.content in carried:
                content = view.content
                self.views[argument] = View(content, "whole", Origin(after, time.block_start[after]))
                self.views[result] = View(content, "whole", exit_)
                self._read(value, condition, through=True)
            elif outside:
                self.views[argument] = self.views[result] = view
                view.content.mentions.append(op)
            else:
                content = self._define(argument, Origin(after, time.late(condition)), condition)
                self.views[result] = View(content, "whole", exit_)
                copies.append((value, content))
        self._join(copies, condition)
        self._block(after)
        self._join([(v, self.content(a)) for v, a in zip(last.operands, before.args) if isinstance(v.type, TensorType)], last)

    def _carried(self, argument: SSAValue, origin: Origin, op: Operation, last: Operation) -> Content:
        content = self._define(argument, origin, op)
        content.definitions.append((self.timeline.late(last), last))
        return content

    def _branch(self, op: scf.IfOp | scf.IndexSwitchOp) -> None:
        regions = [r for r in op.regions if r.first_block is not None]
        results: list[tuple[int, Content]] = []
        for index, result in enumerate(op.results):
            if isinstance(result.type, TensorType):
                content = self._define(result, Origin(cast("Block", op.parent), self.timeline.end[op]))
                last = [cast("Operation", r.block.last_op) for r in regions]
                content.definitions += [(self.timeline.late(y), y) for y in last]
                content.mentions.append(op)
                results.append((index, content))
        for region in regions:
            self._block(region.block)
            last_op = cast("Operation", region.block.last_op)
            self._join([(last_op.operands[i], c) for i, c in results], last_op)

    def _join(self, pairs: Sequence[tuple[SSAValue, Content]], op: Operation) -> None:
        """At `op` each value becomes a content: it may already lie in the memory of any content that takes it."""
        takers: dict[Content, set[Content]] = {}
        for value, content in pairs:
            takers.setdefault(self.content(value), set()).add(content)
        for value, content in pairs:
            content.sources[self.timeline.late(op)] = value
            source = self.views[value]
            if source.content.empty:
                source.content.mentions.append(op)
            else:
                self._read(value, op, takers[source.content] if source.kind != "part" else ())
                content.mentions.append(op)

    def _return(self, op: func.ReturnOp) -> None:
        for output in self.outputs:
            output.definitions.append((self.timeline.late(op), op))
        self._join(list(zip(op.operands, self.outputs)), op)


def captured_tensors(op: Operation) -> list[SSAValue]:
    """Tensors from outside that the body of a `linalg` op reads by name."""
    found: dict[SSAValue, None] = {}
    for region in op.regions:
        for inner in region.walk():
            found.update((v, None) for v in inner.operands if isinstance(v.type, TensorType))
    return list(found)


def reads_outputs(op: Any) -> list[bool]:
    """For each output of a `linalg` op: does the result depend on what the output held before?"""
    if isinstance(op, linalg.FillOp | linalg.CopyOp):
        return [False]
    if not op.regions or op.regions[0].first_block is None:
        return [True] * len(op.outputs)
    arguments = op.regions[0].block.args[len(op.inputs) :]
    return [a.first_use is not None for a in arguments]


_Rule: TypeAlias = Callable[[Contents, Any], None]
_RULES: dict[type[Operation], _Rule] = {
    tensor.EmptyOp: Contents._empty,
    arith.ConstantOp: Contents._constant,
    tensor.CollapseShapeOp: Contents._reshape,
    tensor.ExpandShapeOp: Contents._reshape,
    tensor.CastOp: Contents._cast,
    tensor.ExtractSliceOp: Contents._extract_slice,
    tensor.InsertSliceOp: Contents._insert_slice,
    tensor.InsertOp: Contents._insert,
    tensor.ExtractOp: Contents._extract,
    tensor.DimOp: Contents._dim,
    tensor.FromElementsOp: Contents._elements,
    tensor.SplatOp: Contents._elements,
    func.CallOp: Contents._call,
    func.ReturnOp: Contents._return,
    scf.ForOp: Contents._for,
    scf.WhileOp: Contents._while,
    scf.IfOp: Contents._branch,
    scf.IndexSwitchOp: Contents._branch,
    scf.YieldOp: lambda self, op: None,
    scf.ConditionOp: lambda self, op: None,
}
