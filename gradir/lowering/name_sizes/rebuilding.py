"""Rebuilding functions with names for their sizes: callers first, each op once, with types that follow from its operands.

Control flow keeps the types of its carried values; what a region yields is given that type, after an assertion where the texts differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr, TensorType, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from gradir import size_algebra
from gradir.dialects import ad, nd
from gradir.dialects.types import Dim, Shape, element_of, shape_of, tensor
from gradir.dialects.upstream import arith, func, scf
from gradir.ir.builder import Builder, new_function
from gradir.ir.checks import is_entry
from gradir.ir.structure import is_public
from gradir.lowering.name_sizes.inference import ALIKE, like_an_operand, merged, result_shape

_INDEX = IndexType()
_CALLS = (func.CallOp, ad.ValueAndGradOp, ad.GradOp, ad.VjpOp)
_ARITHMETIC: Mapping[type[Operation], Any] = {
    arith.AddiOp: size_algebra.plus,
    arith.SubiOp: size_algebra.minus,
    arith.MuliOp: size_algebra.times,
    arith.MaxSIOp: size_algebra.maximum,
}


class Module:
    """The functions of a module, old and new."""

    def __init__(self, module: ModuleOp, functions: Sequence[func.FuncOp]) -> None:
        self.module = module
        self.old = {f.sym_name.data: f for f in functions}
        self.made: dict[tuple[str, tuple[Attribute, ...]], func.FuncOp] = {}
        self.names: dict[str, int] = {}

    def run(self) -> None:
        """Rebuild public functions and what they call; private functions that nobody calls stay as they are."""
        for function in self.old.values():
            if is_entry(function):
                self.function(function.sym_name.data, tuple(_named_arguments(function)))
        rebuilt = {name for name, _ in self.made}
        block = self.module.body.block
        for name, old in self.old.items():
            if name not in rebuilt:
                continue
            for (source, _), new in self.made.items():
                if source == name:
                    block.insert_op_before(new, old)
            old.detach()
            old.erase(safe_erase=False)

    def function(self, name: str, types: tuple[Attribute, ...]) -> func.FuncOp:
        """The function for arguments of these types; a second kind of arguments makes a second function."""
        found = self.made.get((name, types))
        if found is None:
            old = self.old[name]
            count = self.names.get(name, 0)
            self.names[name] = count + 1
            found = self.made[name, types] = _rebuilt(self, old, list(types), f"{name}.{count}" if count else name)
        return found


def _named_arguments(function: func.FuncOp) -> list[Attribute]:
    """The types of a public function's arguments, a name for each `?`."""
    types: list[Attribute] = []
    for k, argument in enumerate(function.body.block.args):
        kind = argument.type
        if isinstance(kind, TensorType) and None in (shape := shape_of(cast("Attribute", kind))):
            stem = argument.name_hint or f"arg{k}"
            kind = tensor(element_of(cast("Attribute", kind)), tuple(f"{stem}_{d}" if n is None else n for d, n in enumerate(shape)))
        types.append(kind)
    return types


def _rebuilt(module: Module, old: func.FuncOp, types: list[Attribute], name: str) -> func.FuncOp:
    """The function anew; once more with fewer names where its block uses arguments as one shape."""
    for _ in range(1 + sum(len(shape_of(kind)) for kind in types if isinstance(kind, TensorType))):
        rebuilder = Rebuilder(module, old, types)
        try:
            return rebuilder.run(name)
        except Equal as equal:
            types = [_renamed(kind, equal.names) for kind in types]
    raise AssertionError("every restart leaves one name less")


def _renamed(kind: Attribute, names: Mapping[str, Dim]) -> Attribute:
    if not isinstance(kind, TensorType):
        return kind
    return tensor(element_of(cast("Attribute", kind)), tuple(size_algebra.rename(n, names) for n in shape_of(cast("Attribute", kind))))


class Equal(Exception):
    """Two names of arguments stand for one size."""

    def __init__(self, names: Mapping[str, Dim]) -> None:
        super().__init__(str(names))
        self.names = names


class Rebuilder:
    """One function."""

    def __init__(self, module: Module, old: func.FuncOp, types: Sequence[Attribute]) -> None:
        self.module, self.old = module, old
        self.entry = Block(arg_types=types)
        self.builder = Builder(self.entry, old.location)
        self.values: dict[SSAValue, SSAValue] = {}
        self.sizes: dict[SSAValue, Dim] = {}
        """What index values are, as sizes."""
        self.fresh = {
            n
            for before, kind in zip(old.body.block.args, types)
            if isinstance(kind, TensorType) and is_entry(old)
            for was, n in zip(shape_of(before), shape_of(cast("Attribute", kind)))
            if was is None and isinstance(n, str)
        }
        self.bound = 0

    def run(self, name: str) -> func.FuncOp:
        """The new function."""
        self._enter(self.old.body.block, self.entry)
        results = self.block(self.old.body.block)
        self.builder.loc = self.old.body.block.last_op.location if self.old.body.block.last_op is not None else self.old.location
        self.builder.op(func.ReturnOp, results)
        types = [value.type for value in results]
        made = new_function(name, self.entry, types, private=not is_public(self.old), attributes=self.old.attributes, loc=self.old.location)
        for key in ("arg_attrs", "res_attrs"):
            if key in self.old.properties:
                made.properties[key] = self.old.properties[key]
        return made

    def _enter(self, old: Block, new: Block) -> None:
        for a, b in zip(old.args, new.args):
            self.values[a] = b
            b.name_hint, b.location = a.name_hint, a.location

    def block(self, source: Block) -> list[SSAValue]:
        """Rebuild the ops of a block; the new operands of its terminator."""
        for op in source.ops:
            if op.next_op is None:
                return [self.values[v] for v in op.operands]
            self.builder.loc = op.location
            results = self.op(op)
            for before, after in zip(op.results, results):
                self.values[before] = after
                after.name_hint = before.name_hint
        raise AssertionError("a block without a terminator passed the verifier")

    def op(self, op: Operation) -> Sequence[SSAValue]:
        """The results of `op` anew."""
        operands = [self.values[v] for v in op.operands]
        if isinstance(op, scf.ForOp):
            return self._for(op, operands)
        if isinstance(op, scf.WhileOp):
            return self._while(op, operands)
        if isinstance(op, scf.IfOp | scf.IndexSwitchOp):
            return self._branches(op, operands)
        if isinstance(op, _CALLS):
            return self._call(op, operands)
        if type(op) in ALIKE:
            operands = self._alike(operands)
        regions = [self._region(region) for region in op.regions]
        properties, types = dict(op.properties), [self._type(op, operands, k) for k in range(len(op.results))]
        new = self.builder.op(type(op), operands, types, properties, regions, op.attributes)
        self._follow(new)
        return new.results

    # -- types

    def _type(self, op: Operation, operands: Sequence[SSAValue], k: int) -> Attribute:
        kind = op.results[k].type
        if not isinstance(kind, TensorType) or None not in (declared := shape_of(cast("Attribute", kind))):
            return kind
        if type(op) in ALIKE:
            found: Shape | None = next(shape_of(v) for v in operands if isinstance(v.type, TensorType) and shape_of(v))
        else:
            found = result_shape(op, operands) if k == 0 else None
        if found is None and op.name.startswith("nd."):
            found = like_an_operand(op, operands, op.results[k])
        shape = merged(found, declared)
        if isinstance(op, nd.SIZED) and None in shape:
            shape = self._given(operands, declared, shape)
        return tensor(element_of(cast("Attribute", kind)), shape)

    def _given(self, operands: Sequence[SSAValue], declared: Shape, shape: Shape) -> Shape:
        """Sizes that `sizes` operands give: texts where they are computed from names, else new names."""
        given = iter(operands[len(operands) - sum(not isinstance(n, int) for n in declared) :])
        sizes: list[Dim] = []
        for want, have in zip(declared, shape):
            value = None if isinstance(want, int) else next(given)
            sizes.append(have if have is not None or value is None else self._text(value))
        return tuple(sizes)

    def _text(self, value: SSAValue) -> str:
        size = self.sizes.get(value)
        if isinstance(size, str):
            return size
        name = f"size{self.bound}"
        self.bound += 1
        self.builder.op(nd.BindOp, [value], [], {"sym": StringAttr(name)})
        self.sizes[value] = name
        return name

    def _follow(self, op: Operation) -> None:
        """Note what an index value is as a size."""
        if isinstance(op, nd.SymbolOp):
            self.sizes[op.result] = op.sym.data
        elif isinstance(op, nd.DimOp):
            self.sizes[op.result] = shape_of(op.operand)[op.number("dim")]
        elif isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            self.sizes[op.result] = op.value.value.data
        elif type(op) in _ARITHMETIC and isinstance(op.results[0].type, IndexType):
            parts = [self.sizes.get(v) for v in op.operands]
            self.sizes[op.results[0]] = None if None in parts else _ARITHMETIC[type(op)](*parts)

    def _alike(self, operands: Sequence[SSAValue]) -> list[SSAValue]:
        """Operands of one shape: names of arguments become one, else the program asserts that sizes are equal."""
        ranked = [v for v in operands if isinstance(v.type, TensorType) and shape_of(v)]
        if len({shape_of(v) for v in ranked}) < 2:
            return list(operands)
        wanted = ranked[0]
        for other in ranked[1:]:
            for a, b in zip(shape_of(wanted), shape_of(other)):
                self._one_name(a, b)
        model = next((v for v in ranked if None not in shape_of(v)), wanted)
        return [self.typed(v, shape_of(model)) if v in ranked else v for v in operands]

    def _one_name(self, a: Dim, b: Dim) -> None:
        """Start again with one name for both, if one of them is an argument's that nothing else fixes: raises `Equal`."""
        if a == b or self.builder.block is not self.entry:
            return
        for name, other in ((b, a), (a, b)):
            if name in self.fresh and other is not None and name not in size_algebra.names_in(other) and self._is_told(other):
                raise Equal({name: other})

    def _is_told(self, size: Dim) -> bool:
        """Whether arguments tell the size: the rest of the program may then use it from the start."""
        told = {n for a in self.entry.args if isinstance(a.type, TensorType) for d in shape_of(a) for n in size_algebra.names_in(d)}
        return all(name in told for name in size_algebra.names_in(size))

    def typed(self, value: SSAValue, shape: Shape) -> SSAValue:
        """The value with these texts for its sizes, after an assertion that they are the same numbers."""
        if not isinstance(value.type, TensorType) or shape_of(value) == shape:
            return value
        for d, (have, want) in enumerate(zip(shape_of(value), shape)):
            if have != want and want is not None:
                self._assert_equal(self._size(value, d, have), self._size(value, d, want), f"dimension {d} has size {want}")
        if any(n is None for n in shape):
            return self.builder(nd.ReshapeOp, [value], [tensor(element_of(value), shape)])
        zero = self.builder(nd.ConstantOp, [], [tensor(i64)], {"value": IntegerAttr(0, i64)})
        op = nd.DynamicSliceOp.make(value, [zero] * len(shape), shape)
        return self.builder(nd.DynamicSliceOp, list(op.operands), [op.result.type], dict(op.properties))

    def _like(self, value: SSAValue, kind: Attribute) -> SSAValue:
        return self.typed(value, shape_of(kind)) if isinstance(kind, TensorType) else value

    def _size(self, value: SSAValue, d: int, size: Dim) -> SSAValue:
        if isinstance(size, int):
            return self.builder(arith.ConstantOp, [], [_INDEX], {"value": IntegerAttr(size, _INDEX)})
        if size is None:
            return self.builder(nd.DimOp, [value], [_INDEX], {"dim": IntegerAttr(d, i64)})
        return self.builder(nd.SymbolOp, [], [_INDEX], {"sym": StringAttr(size)})

    def _assert_equal(self, a: SSAValue, b: SSAValue, message: str) -> None:
        equal = self.builder(arith.CmpiOp, [a, b], [i1], {"predicate": arith.integer_predicate("eq")})
        self.builder.op(nd.AssertOp, [equal], [], {"message": StringAttr(message)})

    # -- regions and calls

    def _region(self, region: Region, types: Sequence[Attribute] | None = None, yields: Sequence[Attribute] = ()) -> Region:
        """A region anew, its arguments of these types; what it yields gets the types `yields`, as far as they are given."""
        if not region.blocks:
            return Region()
        source = region.block
        made = Block(arg_types=types if types is not None else [a.type for a in source.args])
        outer, self.builder = self.builder, self.builder.nested(made)
        self._enter(source, made)
        results = self.block(source)
        last = source.last_op
        assert last is not None
        self.builder.loc = last.location
        first = len(results) - len(yields)
        kept = results[:first] + [self._like(value, kind) for value, kind in zip(results[first:], yields)] if yields else results
        self.builder.op(type(last), kept, [], dict(last.properties), attributes=last.attributes)
        self.builder = outer
        return Region(made)

    def _for(self, op: scf.ForOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
        carried = [v.type for v in operands[3:]]
        body = self._region(op.body, [_INDEX, *carried], carried)
        return self.builder.op(scf.ForOp, operands, carried, op.properties, [body], op.attributes).results

    def _while(self, op: scf.WhileOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
        carried = [v.type for v in operands]
        before = self._region(op.before_region, carried)
        last = before.block.last_op
        assert last is not None
        passed = [v.type for v in last.operands[1:]]
        after = self._region(op.after_region, passed, carried)
        return self.builder.op(scf.WhileOp, operands, passed, op.properties, [before, after], op.attributes).results

    def _branches(self, op: Operation, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
        types: list[Attribute] = []
        regions: list[Region] = []
        for region in op.regions:
            regions.append(self._region(region, None, types))
            last = regions[-1].block.last_op if regions[-1].blocks else None
            if not types and last is not None:
                types = [v.type for v in last.operands]
        return self.builder.op(type(op), operands, types, op.properties, regions, op.attributes).results

    def _call(self, op: Any, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
        name = op.callee.string_value()
        old = self.module.old.get(name)
        types = [r.type for r in op.results]
        properties = dict(op.properties)
        if old is not None:
            count = len(old.function_type.inputs.data)
            callee = self.module.function(name, tuple(v.type for v in operands[:count]))
            properties["callee"] = SymbolRefAttr(callee.sym_name.data)
            inputs, outputs = list(callee.function_type.inputs), list(callee.function_type.outputs)
            types = outputs if isinstance(op, func.CallOp) else op.expected_results(inputs, outputs)
            expected = inputs if isinstance(op, func.CallOp) else op.expected_args(inputs, outputs)
            operands = [self._like(value, kind) for value, kind in zip(operands, expected)]
        return self.builder.op(type(op), operands, types, properties, (), op.attributes).results


__all__ = ["Module"]
