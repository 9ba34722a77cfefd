"""Modules of level 1 as StableHLO text: one table from the name of an op to the rule that writes it, one file per family.

An op with one counterpart becomes that op; one whose meaning takes several ops becomes a `stablehlo.composite` of its name with a
decomposition (`composites.py`). Derivative requests are resolved first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr

from gradir.dialects.upstream.func import FuncOp
from gradir.driver.lower import run_passes
from gradir.driver.pipelines import Request
from gradir.driver.report import CompileReport
from gradir.errors import GradirError
from gradir.frontends.stablehlo.conversion import Missing, UnsupportedError, listed
from gradir.frontends.stablehlo.export import (
    bits,
    complex,
    composites,
    contractions,
    control,
    elementwise,
    indexing,
    linalg,
    reductions,
    regions,
    shapes,
    windows,
)
from gradir.frontends.stablehlo.export.composites import function_text
from gradir.frontends.stablehlo.export.symbols import symbol_text
from gradir.frontends.stablehlo.export.writer import ExportRule, Value, Writer, kind_of, placeholder_type
from gradir.ir.structure import is_public

EXPORT_RULES: Mapping[str, ExportRule] = {
    **composites.RULES,
    **elementwise.RULES,
    **shapes.RULES,
    **contractions.RULES,
    **reductions.RULES,
    **windows.RULES,
    **indexing.RULES,
    **regions.RULES,
    **bits.RULES,
    **complex.RULES,
    **linalg.RULES,
    **control.RULES,
}
"""Name of an op -> how it is written."""


def export_text(module: ModuleOp) -> str:
    """The StableHLO module that computes what `module`, of level 1, does; `module` is not changed.

    Raises GradirError GR121 with everything that has no counterpart.
    """
    if any(op.name.startswith("ad.") for op in module.walk()):
        module = module.clone()
        run_passes(module, [Request("differentiate", {})], CompileReport())
    writer = Writer(EXPORT_RULES)
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    writer.taken = {function.sym_name.data for function in functions}
    for op in module.body.block.ops:
        if not isinstance(op, FuncOp):
            writer.report(op, "not a function")
    texts = [_function(writer, function) for function in functions]
    if writer.missing:
        raise _unsupported(writer.missing)
    name = module.properties.get("sym_name")
    head = f"module {symbol_text(name.data)} {{" if isinstance(name, StringAttr) else "module {"
    return "\n".join([head, *texts, *writer.functions, "}"]) + "\n"


def _function(w: Writer, function: FuncOp) -> str:
    for kind in dict.fromkeys([*function.function_type.inputs, *function.function_type.outputs]):
        try:
            kind_of(kind)
        except UnsupportedError as error:
            w.report(function, str(error))
    body = function.body.first_block
    if body is None or body.next_block is not None:
        w.report(function, "a function without a body" if body is None else "a function of several blocks")
        return ""
    with w.function() as lines:
        arguments = [Value(w.fresh(), placeholder_type(argument.type)) for argument in body.args]
        results = w.block(body, arguments)
    return function_text(function.sym_name.data, arguments, results, lines, private=not is_public(function))


def _unsupported(missing: Sequence[Missing]) -> GradirError:
    first, *more = missing
    names = ", ".join(dict.fromkeys(item.op for item in missing))
    return GradirError(
        f"{len(missing)} ops of this program have no counterpart in StableHLO: {names}" if more else f"{first.op}: {first.reason}",
        part="graph",
        code="GR121",
        op=first.op,
        function=first.function,
        location=first.location,
        found=listed(missing) if more else "",
    )


__all__ = ["EXPORT_RULES", "export_text"]
