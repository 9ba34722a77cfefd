"""Kernels in buffer form: one variant per combination of strides, offsets widened over its call sites, and how operands may alias.

`gradir.access` of an operand is "read", "write" (all of it, its old elements are not read) or "readwrite". `gradir.alias` lists operands
that may overlap it at some call site where one of the two is written; what is not listed does not overlap: the emitter makes it `noalias`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Operation, Region

from gradir.dialects.kernel import LIBRARY_ATTRIBUTE
from gradir.dialects.upstream import func, memref
from gradir.ir.builder import new_function
from gradir.lowering.bufferize.contents import Contents
from gradir.lowering.bufferize.emit_control import FunctionEmitter
from gradir.lowering.bufferize.in_place import in_place_pairs
from gradir.lowering.bufferize.layouts import MemRef, anywhere, layout_of, memref_of
from gradir.lowering.bufferize.memory import CallSite, Module
from gradir.lowering.bufferize.places import may_overlap
from gradir.lowering.bufferize.plan import Plan
from gradir.lowering.bufferize.views import KernelFacts

ACCESS = "gradir.access"
ALIAS = "gradir.alias"


@dataclass(eq=False, slots=True)
class Kernel:
    """A kernel in tensor form with what its callers rely on; `contents` is None for one that is only declared."""

    function: func.FuncOp
    facts: KernelFacts
    contents: Contents | None


@dataclass(eq=False, slots=True)
class Variant:
    """The call sites of one kernel that pass equal strides."""

    sites: list[CallSite] = field(default_factory=list[CallSite])

    def types(self) -> list[Attribute]:
        """Operand types: contiguous from the start of a buffer where all callers have that, else any offset."""
        columns = zip(*(site.call.operands for site in self.sites))
        return [_widest([v.type for v in column]) for column in columns]

    def aliases(self, written: set[int]) -> dict[int, list[int]]:
        """For each operand the operands that it may overlap at some site, one of the two being written."""
        found: dict[int, set[int]] = {}
        for site in self.sites:
            for w in written:
                for other, places in enumerate(site.places):
                    if other != w and may_overlap(site.places[w], places):
                        found.setdefault(w, set()).add(other)
                        found.setdefault(other, set()).add(w)
        return {k: sorted(v) for k, v in found.items()}


def read_kernel(function: func.FuncOp) -> Kernel:
    """The analysis of a kernel in destination-passing style: its last arguments are the destinations of its results."""
    results = len(function.function_type.outputs.data)
    if function.body.first_block is None:
        return Kernel(function, KernelFacts(results, frozenset(), frozenset(), LIBRARY_ATTRIBUTE in function.attributes), None)
    contents = Contents(function, {}, destinations=results)
    updates = frozenset(k for k, output in enumerate(contents.outputs) if output.reads)
    return Kernel(function, KernelFacts(results, in_place_pairs(function, results), updates), contents)


def emit_kernel(kernel: Kernel, sites: Sequence[CallSite], module: Module) -> list[func.FuncOp]:
    """The variants of `kernel` that its calls need; every call is turned to its variant."""
    variants: dict[tuple[object, ...], Variant] = {}
    for site in sites:
        key = tuple(layout_of(cast("MemRef", v.type))[0] if isinstance(v.type, MemRefType) else None for v in site.call.operands)
        variants.setdefault(key, Variant()).sites.append(site)
    plan = Plan(kernel.contents) if kernel.contents is not None else None
    names = _names(kernel.function.sym_name.data, len(variants), module)
    remaining = len(variants)
    made: list[func.FuncOp] = []
    for name, variant in zip(names, variants.values()):
        remaining -= 1
        types = variant.types()
        made.append(_variant(kernel, plan, name, types, variant, module, consume=not remaining))
        for site in variant.sites:
            _turn(site.call, name, types)
    if not variants:
        types = [memref_of(t) for t in kernel.function.function_type.inputs.data]
        made.append(_variant(kernel, plan, kernel.function.sym_name.data, types, Variant(), module, consume=True))
    return made


def _variant(
    kernel: Kernel, plan: Plan | None, name: str, types: Sequence[Attribute], variant: Variant, module: Module, *, consume: bool
) -> func.FuncOp:
    function = kernel.function
    properties: dict[str, Attribute] = {"arg_attrs": _operand_attributes(kernel, variant)}
    if plan is None:
        properties |= {k: v for k, v in function.properties.items() if k not in ("function_type", "res_attrs", "arg_attrs")}
        properties |= {"sym_name": StringAttr(name), "function_type": FunctionType.from_lists(types, [])}
        return func.FuncOp.create(
            properties=properties, attributes=dict(function.attributes), regions=[Region()], location=function.location
        )
    emitter = FunctionEmitter(plan, types, module, consume=consume)
    block = emitter.run()
    new = new_function(name, block, (), private=True, attributes=function.attributes, loc=function.location)
    new.properties |= properties
    if emitter.copied:
        module.copies[name] = emitter.copied
    return new


def _operand_attributes(kernel: Kernel, variant: Variant) -> ArrayAttr[DictionaryAttr]:
    inputs = kernel.function.function_type.inputs.data
    first = len(inputs) - kernel.facts.results
    aliases = variant.aliases(set(range(first, len(inputs))))
    rows: list[DictionaryAttr] = []
    for index, type_ in enumerate(inputs):
        if not isinstance(type_, TensorType):
            rows.append(DictionaryAttr({}))
            continue
        access = "read" if index < first else "readwrite" if index - first in kernel.facts.updates else "write"
        row: dict[str, Attribute] = {ACCESS: StringAttr(access)}
        if index in aliases:
            row[ALIAS] = ArrayAttr(IntegerAttr(n, i64) for n in aliases[index])
        rows.append(DictionaryAttr(row))
    return ArrayAttr(rows)


def _widest(types: Sequence[Attribute]) -> Attribute:
    first = types[0]
    if not isinstance(first, MemRefType):
        return first
    plain = all(layout_of(cast("MemRef", t))[1] == 0 for t in types)
    return cast("Any", first) if plain else anywhere(cast("MemRef", first))


def _turn(call: func.CallOp, name: str, types: Sequence[Attribute]) -> None:
    """Let `call` call the variant `name` on operands of its types."""
    call.properties["callee"] = SymbolRefAttr(name)
    block = call.parent
    assert block is not None
    for index, type_ in enumerate(types):
        if call.operands[index].type != type_:
            cast_: Operation = memref.CastOp.create(operands=[call.operands[index]], result_types=[type_], location=call.location)
            block.insert_op_before(cast_, call)
            call.operands[index] = cast_.results[0]


def _names(name: str, count: int, module: Module) -> list[str]:
    names, number = [name], 1
    while len(names) < count:
        candidate = f"{name}_s{number}"
        number += 1
        if candidate not in module.symbols:
            module.symbols.add(candidate)
            names.append(candidate)
    return names
