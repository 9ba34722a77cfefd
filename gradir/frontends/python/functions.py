"""From a Python function to a `func.func`: arguments by structure, captured arrays as extra arguments, results by structure."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import FileLineColLoc, SymbolRefAttr
from xdsl.ir import Block

from gradir.dialects.upstream import func
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.operands import as_array
from gradir.frontends.python.pytrees import Structure, flatten, paths, unflatten
from gradir.frontends.python.trace import (
    FunctionTrace,
    ModuleTrace,
    argument,
    code_location,
    current,
    into,
    python_location,
    ssa,
    user_error,
)
from gradir.ir.builder import Builder, new_function


@dataclass(frozen=True)
class Traced:
    """A function in the module: its name, the outer arrays it reads, its result structure and types."""

    name: str
    captured: tuple[Array, ...]
    structure: Structure
    outputs: tuple[Array, ...]


def trace_function(
    module: ModuleTrace,
    function: Callable[..., Any],
    leaves: Sequence[Array],
    structure: Structure,
    *,
    parent: FunctionTrace | None = None,
    private: bool = True,
    recording: bool = False,
    scalar_first: bool = False,
    has_aux: bool = False,
    names: Sequence[str] | None = None,
    symbol: str | None = None,
) -> Traced:
    """Run `function(*args)` once on tracers for `leaves` and append the func.func; `structure` is that of the tuple of arguments.

    `scalar_first`: the function is a loss, or (`has_aux`) a pair (loss, aux); the results are loss, then aux leaves. `symbol`: the
    name that `module.fresh` gave before.
    """
    name = symbol or module.fresh(getattr(function, "__name__", "f"))
    block = Block(arg_types=[x.type for x in leaves])
    trace = FunctionTrace(module, block, parent, recording)
    at = _definition(function)
    for arg, hint in zip(block.args, names or argument_names(function, structure)):
        arg.name_hint, arg.location = hint, at
    with into(trace, block):
        args = [argument(trace, v, x.concrete if recording else None) for v, x in zip(block.args, leaves)]
        result = _called(function, unflatten(structure, args))
        if scalar_first:
            result = _loss(getattr(function, "__name__", "f"), result, has_aux)
        flat, out_structure = flatten(result)
        outputs = [as_array(x) for x in flat]
        values = [ssa(x) for x in outputs]
        builder: Builder = current()[1]
        builder.loc = python_location()
        builder.op(func.ReturnOp, values)
    captured = tuple(a for a, _ in trace.captured.values())
    for _, value in trace.captured.values():
        value.location = at
    module.module.body.block.add_op(new_function(name, block, [v.type for v in values], private=private, loc=at))
    return Traced(name, captured, out_structure, tuple(outputs))


def _called(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """`function(*args)`. GradirError GR040 where the function calls itself whatever the values are, or calls are nested too deeply."""
    try:
        return function(*args)
    except RecursionError:
        raise user_error(
            f"tracing {getattr(function, '__name__', 'f')} does not come to an end: it calls itself, or calls are nested too deeply",
            code="GR040",
            expected=f"fewer nested calls than Python takes ({sys.getrecursionlimit()} frames, sys.setrecursionlimit)",
            found="more",
            hint="a condition on values does not end a recursion in a trace: write a loop, gradir.while_loop or gradir.fori_loop",
        ) from None


def _definition(function: Callable[..., Any]) -> FileLineColLoc:
    """Where `function` was defined; the place of the call for callables without code of their own."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return python_location() if code is None else code_location(code)


def argument_names(function: Callable[..., Any], structure: Structure) -> list[str]:
    """Readable names for the leaves: `params_w1` for `params["w1"]`."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    flat = paths(structure)
    out: list[str] = []
    for path in flat:
        match = re.match(r"\[(\d+)\](.*)", path)
        position, rest = (int(match[1]), match[2]) if match else (0, path)
        stem = names[position] if position < len(names) else f"arg{position}"
        name = re.sub(r"\W+", "_", stem + rest).strip("_")
        out.append(name if name and not name[0].isdigit() else f"a_{name}")
    return out


def _loss(name: str, result: Any, has_aux: bool) -> Any:
    """A loss is one real scalar; with `has_aux` the function returns (loss, aux)."""
    if has_aux and not (isinstance(result, tuple) and len(result) == 2):
        raise user_error(
            f"{name}: has_aux asks for a pair (loss, aux)",
            code="GR108",
            op="ad.value_and_grad",
            expected="a pair",
            found=type(result).__name__,
        )
    loss = result[0] if has_aux else result
    loss = None if loss is None or isinstance(loss, dict | list | tuple) else as_array(loss)
    if loss is None or loss.ndim != 0 or loss.dtype.kind not in "fV":
        found = str(loss.type) if loss is not None else "None: is a return missing?" if result is None else type(result).__name__
        raise user_error(
            f"{name}: a gradient needs a real scalar",
            code="GR108",
            op="ad.value_and_grad",
            expected="a rank-0 floating-point array",
            found=found,
            hint="reduce the result, for example with gradir.mean; with more results, return (loss, aux) and pass has_aux=True",
        )
    return (loss, result[1]) if has_aux else loss


def call(traced: Traced, leaves: Sequence[Array]) -> Any:
    """`func.call` of a traced function from the current one."""
    function, builder = current()
    builder.loc = python_location()
    operands = [ssa(x) for x in (*leaves, *traced.captured)]
    kinds = [x.type for x in traced.outputs]
    new = builder.op(func.CallOp, operands, kinds, {"callee": SymbolRefAttr(traced.name)})
    return unflatten(traced.structure, [Array(k, v, function) for k, v in zip(kinds, new.results)])
