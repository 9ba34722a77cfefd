"""Random well-typed programs at the tensor level.

A program grows by steps. A step is a template (see `templates`) on values that are there: of the right type, fitted to it by conversion,
slices and padding, a new argument of the function, or a constant. Between them stand `scf.if`, `for`, `while`, `index_switch` and calls of
private functions, each of which grows in the same way. At the end one size may get a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, ModuleOp, SymbolRefAttr, TensorType, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from gradir.dialects import nd
from gradir.dialects.types import element_of, is_static, shape_of, static_shape, tensor
from gradir.dialects.upstream import arith
from gradir.dialects.upstream.func import CallOp, FuncOp, ReturnOp
from gradir.dialects.upstream.tensor import ExtractOp
from gradir.ir.builder import Builder, new_function
from gradir.ir.diagnostics import Engine
from gradir.ir.text import print_module
from gradir.ir.verifier import verify
from gradir.tools.fuzz.templates import LARGEST, ops, templates_of, varied
from gradir.tools.reduce.edits.types import substitute

INDEX = IndexType()
BOOL = tensor(i1)


class _NoValueError(Exception):
    """In a called function nothing has a type with run-time sizes, and a constant cannot have it."""


def random_program(seed: int, *, steps: int = 8, only: Sequence[str] = ()) -> str:
    """The text of the program with that seed; `only` restricts the ops."""
    rng = np.random.default_rng(seed)
    growth = _Growth(rng, tuple(only) or ops())
    growth.entry(1 + int(rng.integers(steps)))
    module = growth.module
    if rng.random() < 0.25:
        module = _with_a_name(rng, module)
    return print_module(module)


@dataclass
class Scope:
    """What a block under construction sees: `values` in order, the latest ones are used most; `block` is where ops go."""

    block: Block
    values: list[SSAValue]
    depth: int
    entry: Block | None
    """The block of the function, to which arguments may be added; None where the function is called already."""

    fresh: int = 0
    """How many of `values` come from outside of the block."""

    builder: Builder = field(init=False)

    def __post_init__(self) -> None:
        self.builder = Builder(self.block)

    def add(self, value: SSAValue) -> None:
        self.values.append(value)


class _Growth:
    def __init__(self, rng: np.random.Generator, names: Sequence[str]) -> None:
        self.rng, self.names = rng, names
        self.module = ModuleOp([])
        self.functions = 0

    # -- functions

    def entry(self, steps: int) -> None:
        """The public function `@main`."""
        block = Block()
        scope = Scope(block, [], 0, block)
        self.grow(scope, steps)
        self.finish(scope, "main", private=False)

    def finish(self, scope: Scope, name: str, *, private: bool) -> list[Attribute]:
        """Return up to three of the scope's own values, the last among them; their types."""
        own = scope.values[scope.fresh :] or scope.values
        chosen = [own[-1]] if own else []
        chosen += [own[int(self.rng.integers(len(own)))] for _ in range(int(self.rng.integers(3)))] if own else []
        results = [value for value in dict.fromkeys(chosen) if isinstance(value.type, TensorType)]
        scope.builder.op(ReturnOp, results)
        kinds = [value.type for value in results]
        self.module.body.block.add_op(new_function(name, scope.block, kinds, private=private))
        return kinds

    # -- steps

    def grow(self, scope: Scope, steps: int) -> None:
        for _ in range(steps):
            if scope.depth < 3 and self.rng.random() < 0.25:
                kinds = (self.branch, self.loop, self.while_loop, self.switch, self.call)
                kinds[int(self.rng.integers(len(kinds)))](scope)
            else:
                self.step(scope)

    def step(self, scope: Scope) -> None:
        """One template."""
        rows = templates_of(self.names[int(self.rng.integers(len(self.names)))])
        if not rows:
            return
        template = rows[int(self.rng.integers(len(rows)))]
        function = varied(template, self.rng)
        values: dict[SSAValue, SSAValue] = {}
        try:
            for k, argument in enumerate(function.body.block.args):
                data = template.inputs[k] if function is template.function else None
                values[argument] = self.value(scope, argument.type, data)
        except _NoValueError:
            return
        last = function.body.block.last_op
        for inner in function.body.block.ops:
            if inner is not last:
                scope.block.add_op(inner.clone(values))
        assert last is not None
        for result in last.operands:
            scope.add(values[result])

    def value(self, scope: Scope, kind: Attribute, data: np.ndarray[Any, Any] | None = None) -> SSAValue:
        """A value of that type: one that is there, a fitted one, an argument, or a constant."""
        equal = [value for value in scope.values if value.type == kind]
        if equal and self.rng.random() < 0.8:
            return equal[-1 - min(int(self.rng.integers(len(equal))) for _ in range(2))]
        if isinstance(kind, TensorType) and is_static(kind):
            others = [v for v in scope.values if isinstance(v.type, TensorType) and is_static(v.type)]
            if others and self.rng.random() < 0.6:
                fitted = self.fit(scope, others[int(self.rng.integers(len(others)))], kind)
                if fitted is not None:
                    return fitted
            if scope.entry is None or (data is not None and self.rng.random() < 0.3):
                return self.constant(scope, kind, data)
        if scope.entry is not None:
            return scope.entry.insert_arg(kind, len(scope.entry.args))
        if isinstance(kind, IndexType):
            return self.index(scope, 1)
        if equal:
            return equal[-1]
        raise _NoValueError

    def constant(self, scope: Scope, kind: TensorType[Any], data: np.ndarray[Any, Any] | None) -> SSAValue:
        if data is not None and nd.ConstantOp.make(data).result.type == kind:
            return nd.emit(scope.builder, nd.ConstantOp.make(data))
        return nd.emit(scope.builder, nd.ConstantOp.splat(int(self.rng.integers(-1, 3)), kind))

    def fit(self, scope: Scope, value: SSAValue, kind: TensorType[Any]) -> SSAValue | None:
        """`value` converted, flattened, cut or padded, and reshaped to `kind`."""
        add, wanted = scope.builder, prod(static_shape(kind))
        if wanted > LARGEST:
            return None
        if element_of(value) != element_of(kind):
            if "complex" in f"{element_of(value)}{element_of(kind)}":
                return None
            value = add(nd.ConvertOp, [value], [tensor(element_of(kind), shape_of(value))])
        if value.type == kind:
            return value
        count = prod(static_shape(value))
        value = nd.emit(add, nd.ReshapeOp.make(value, [count]))
        if count > wanted:
            value = nd.emit(add, nd.SliceOp.make(value, [0], [wanted], [1]))
        elif count < wanted:
            zero = nd.emit(add, nd.ConstantOp.splat(1, tensor(element_of(kind))))
            value = nd.emit(add, nd.PadOp.make(value, zero, [0], [wanted - count], [0]))
        return nd.emit(add, nd.ReshapeOp.make(value, static_shape(kind)))

    # -- control flow

    def nested(self, scope: Scope, arguments: Sequence[Attribute] = ()) -> Scope:
        block = Block(arg_types=list(arguments))
        inner = Scope(block, [*scope.values, *block.args], scope.depth + 1, scope.entry)
        inner.fresh = len(inner.values)
        return inner

    def tensors(self, scope: Scope, count: int) -> list[SSAValue]:
        """Up to `count` tensors of the scope, at least one; in a called function of types that constants can have."""
        found = [v for v in scope.values if isinstance(v.type, TensorType) and (scope.entry is not None or is_static(v.type))]
        if not found:
            return [self.value(scope, BOOL)]
        return [found[-1 - int(self.rng.integers(min(len(found), 6)))] for _ in range(1 + int(self.rng.integers(count)))]

    def yielded(self, scope: Scope, kinds: Sequence[Attribute]) -> None:
        """End a region with values of these types."""
        values: list[SSAValue] = []
        for kind in kinds:
            own = [value for value in scope.values[scope.fresh :] if value.type == kind]
            values.append(own[-1] if own else self.value(scope, kind))
        scope.builder.op(scf.YieldOp, values)

    def inner_steps(self) -> int:
        return 1 + int(self.rng.integers(3))

    def index(self, scope: Scope, value: int) -> SSAValue:
        return scope.builder(arith.ConstantOp, (), [INDEX], {"value": IntegerAttr(value, INDEX)})

    def condition(self, scope: Scope) -> SSAValue:
        return scope.builder(ExtractOp, [self.value(scope, BOOL)], [i1])

    def branch(self, scope: Scope) -> None:
        """`scf.if`"""
        condition = self.condition(scope)
        regions: list[Region] = []
        kinds: list[Attribute] = []
        for k in range(2):
            inner = self.nested(scope)
            self.grow(inner, self.inner_steps())
            if k == 0:
                kinds = [value.type for value in self.tensors(inner, 2)]
            self.yielded(inner, kinds)
            regions.append(Region(inner.block))
        self.results(scope, scope.builder.op(scf.IfOp, [condition], kinds, regions=regions))

    def loop(self, scope: Scope) -> None:
        """`scf.for`, of 0 to 4 trips."""
        carried = self.tensors(scope, 3)
        bounds = [
            self.index(scope, int(self.rng.integers(2))),
            self.index(scope, int(self.rng.integers(5))),
            self.index(scope, int(self.rng.integers(1, 3))),
        ]
        kinds = [value.type for value in carried]
        inner = self.nested(scope, [INDEX, *kinds])
        self.grow(inner, self.inner_steps())
        self.yielded(inner, kinds)
        self.results(scope, scope.builder.op(scf.ForOp, [*bounds, *carried], kinds, regions=[Region(inner.block)]))

    def while_loop(self, scope: Scope) -> None:
        """`scf.while` that counts to at most 3 and may stop earlier."""
        carried = self.tensors(scope, 2)
        start = self.index(scope, 0)
        kinds = [INDEX, *(value.type for value in carried)]
        before = self.nested(scope, kinds)
        limit = self.index(before, int(self.rng.integers(4)))
        add = before.builder
        more = add(arith.CmpiOp, [before.block.args[0], limit], [i1], {"predicate": arith.integer_predicate("slt")})
        if self.rng.random() < 0.4:
            self.grow(before, 1)
            more = add(arith.AndIOp, [more, self.condition(before)], [i1])
        add.op(scf.ConditionOp, [more, *before.block.args])
        after = self.nested(scope, kinds)
        self.grow(after, self.inner_steps())
        one = self.index(after, 1)
        following = after.builder(arith.AddiOp, [after.block.args[0], one], [INDEX], {"overflowFlags": arith.IntegerOverflowAttr("none")})
        after.values.append(following)
        self.while_yield(after, following, kinds[1:])
        op = scope.builder.op(scf.WhileOp, [start, *carried], kinds, regions=[Region(before.block), Region(after.block)])
        self.results(scope, op)

    def while_yield(self, scope: Scope, counter: SSAValue, kinds: Sequence[Attribute]) -> None:
        self.yielded(scope, kinds)
        last = scope.block.last_op
        assert last is not None
        last.operands = [counter, *last.operands]

    def switch(self, scope: Scope) -> None:
        """`scf.index_switch` with one to three cases."""
        cases = list(range(1 + int(self.rng.integers(3))))
        indices = [value for value in scope.values if isinstance(value.type, IndexType)]
        selector = indices[-1] if indices and self.rng.random() < 0.7 else self.index(scope, int(self.rng.integers(4)))
        regions: list[Region] = []
        kinds: list[Attribute] = []
        for k in range(len(cases) + 1):
            inner = self.nested(scope)
            self.grow(inner, self.inner_steps())
            if k == 0:
                kinds = [value.type for value in self.tensors(inner, 2)]
            self.yielded(inner, kinds)
            regions.append(Region(inner.block))
        op = scope.builder.op(scf.IndexSwitchOp, [selector], kinds, {"cases": DenseArrayBase.from_list(i64, cases)}, regions=regions)
        self.results(scope, op)

    def call(self, scope: Scope) -> None:
        """A private function, and a call of it."""
        arguments = self.tensors(scope, 3)
        block = Block(arg_types=[value.type for value in arguments])
        inner = Scope(block, list(block.args), scope.depth + 1, None)
        inner.fresh = len(inner.values)
        self.grow(inner, self.inner_steps())
        self.functions += 1
        name = f"part{self.functions}"
        kinds = self.finish(inner, name, private=True)
        self.results(scope, scope.builder.op(CallOp, arguments, kinds, {"callee": SymbolRefAttr(name)}))

    def results(self, scope: Scope, op: Operation) -> None:
        for result in op.results:
            scope.add(result)


def _with_a_name(rng: np.random.Generator, module: ModuleOp) -> ModuleOp:
    """The module with a name for one of its sizes, if that verifies."""
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    sizes = sorted(
        {
            n
            for f in functions
            for kind in f.function_type.inputs.data
            if isinstance(kind, TensorType)
            for n in shape_of(kind)
            if isinstance(n, int)
        }
    )
    for size in rng.permutation(sizes) if sizes else ():
        named = module.clone()
        try:
            substitute(named, sizes=lambda n, size=int(size): "n" if n == size else n)
        except (VerifyException, ValueError):
            continue
        if verify(named, Engine(), limit=1):
            return named
    return module
