"""From a module of StableHLO to level 1: every function anew, op by op, by the rules of the families.

Nothing of the input is kept but names, types and locations. What cannot be converted is collected from the whole module first, then
raised as one error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr, TensorType
from xdsl.ir import Attribute, Block, Operation

from gradir import size_algebra
from gradir.dialects.size_limits import LIMITS, limits_attribute
from gradir.dialects.types import element_of, shape_of, tensor
from gradir.dialects.upstream.func import FuncOp, ReturnOp
from gradir.errors import GradirError
from gradir.frontends.stablehlo import (
    bits,
    collectives,
    contractions,
    control,
    custom_calls,
    dynamic,
    effects,
    elementwise,
    fourier,
    indexing,
    linalg,
    normalization,
    quantization,
    random,
    reductions,
    shapes,
    sorting,
    windows,
)
from gradir.frontends.stablehlo.conversion import Conversion, Missing, Rule, UnsupportedError, check_type, listed
from gradir.frontends.stablehlo.dialect import attribute
from gradir.frontends.stablehlo.symbolic import Symbolic
from gradir.ir.builder import Builder, new_function
from gradir.ir.diagnostics import Engine
from gradir.ir.structure import is_public

RULES: Mapping[str, Rule] = {
    **elementwise.RULES,
    **bits.RULES,
    **quantization.RULES,
    **shapes.RULES,
    **contractions.RULES,
    **reductions.RULES,
    **windows.RULES,
    **indexing.RULES,
    **control.RULES,
    **linalg.RULES,
    **fourier.RULES,
    **custom_calls.RULES,
    **sorting.RULES,
    **effects.RULES,
    **collectives.RULES,
    **normalization.RULES,
    **random.RULES,
    **dynamic.RULES,
}
"""Name of an op -> how it is converted."""

IGNORED = ("sdy.mesh",)
"""Ops of a module that say nothing about values."""

NOTE = "sharding is ignored: the program runs on one device"


def convert(source: ModuleOp, context: Context, engine: Engine) -> ModuleOp:
    """The module of level 1 that computes what `source` does, which was read with `context`; remarks go to `engine`.

    Raises GradirError GR120 with everything that has no counterpart.
    """
    known = {op.sym_name.data: op for op in source.body.block.ops if isinstance(op, FuncOp)}
    conversion = Conversion(context, RULES, Builder(Block(), source.location), known)
    if dynamic.is_dynamic(list(known.values())):
        conversion.dynamic = dynamic.Dynamic(Symbolic(lambda old: shape_of(conversion.values[old])))
        conversion.elementwise = frozenset(elementwise.RULES)
    functions: list[Operation] = []
    spelled_out = _decompositions(source)
    for op in source.body.block.ops:
        if isinstance(op, FuncOp) and op.sym_name.data in spelled_out:
            continue
        if isinstance(op, FuncOp):
            if conversion.dynamic is None or is_public(op):  # private ones become part of their callers
                functions.append(_function(conversion, op))
        elif op.name in IGNORED:
            conversion.sharded.append(op)
        else:
            conversion.report(op, "not a function")
    if conversion.missing:
        raise _unsupported(conversion.missing)
    for op in conversion.sharded:
        engine.remark(op, NOTE)
    made = ModuleOp(functions)
    made.location = source.location
    name = source.properties.get("sym_name") or source.attributes.get("sym_name")
    if isinstance(name, StringAttr):
        made.properties["sym_name"] = name
    return made


def _decompositions(source: ModuleOp) -> set[str]:
    """Functions that only say what composites of ours mean: the op itself says it."""
    known, called = set[str](), set[str]()
    for op in source.walk():
        if op.name in ("stablehlo.composite", "func.call"):
            symbol = attribute(op, "decomposition" if op.name == "stablehlo.composite" else "callee")
            if isinstance(symbol, SymbolRefAttr):
                (called if control.own_composite(op) is None else known).add(symbol.string_value())
    return known - called


def _function(conversion: Conversion, source: FuncOp) -> Operation:
    types = [*source.function_type.inputs, *source.function_type.outputs]
    for kind in dict.fromkeys(types):
        try:
            check_type(kind, run_time=conversion.dynamic is not None)
        except UnsupportedError as error:
            conversion.report(source, str(error))
    body = source.body.first_block
    if body is None or body.next_block is not None:
        conversion.report(source, "a function without a body" if body is None else "a function of several blocks")
        return source.clone()
    inputs: list[Attribute] = list(source.function_type.inputs)
    if conversion.dynamic is not None:
        named = dynamic.named_arguments(source, conversion.functions)
        inputs = [tensor(element_of(a), named[a]) if a in named else a.type for a in body.args]
        conversion.dynamic.symbolic.limits.clear()
    made = Block(arg_types=inputs)
    for old, new in zip(body.args, made.args):
        new.location = old.location
        new.name_hint = old.name_hint
    conversion.values.update(zip(body.args, made.args))
    conversion.builder = Builder(made, source.location)
    outputs: list[Attribute] = list(source.function_type.outputs)
    for op in body.ops:
        if isinstance(op, ReturnOp):
            conversion.builder.loc = op.location
            results = conversion.operands(op)
            outputs = [value.type for value in results]
            conversion.builder.op(ReturnOp, results)
        else:
            conversion.convert(op)
    attributes: dict[str, Attribute] = {}
    if conversion.dynamic is not None:
        sizes = {name for kind in inputs if isinstance(kind, TensorType) for n in shape_of(kind) for name in size_algebra.names_in(n)}
        if limits := dynamic.limits(conversion, sorted(sizes)):
            attributes[LIMITS] = limits_attribute(limits)
    return new_function(source.sym_name.data, made, outputs, private=not is_public(source), attributes=attributes, loc=source.location)


def _unsupported(missing: Sequence[Missing]) -> GradirError:
    first, *more = missing
    names = ", ".join(dict.fromkeys(item.op for item in missing))
    return GradirError(
        f"{len(missing)} ops of this program are not supported: {names}" if more else f"{first.op}: {first.reason}",
        part="graph",
        code="GR120",
        op=first.op,
        function=first.function,
        location=first.location,
        found=listed(missing) if more else "",
    )
