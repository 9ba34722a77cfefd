"""`with gradir.eager():` runs functions op by op on concrete values, through each op's own `evaluate`.

Prints, breakpoints and Python branches on values work; the numbers are those of the definition of each op. A gradient is
taken by *recording*: the function runs on values and is traced at once, the record is differentiated and evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from xdsl.ir import Block

from gradir.dialects.upstream import func
from gradir.driver.evaluate import evaluate_level1
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.derivative_ops import differentiated_arguments, jvp_request, request
from gradir.frontends.python.functions import trace_function
from gradir.frontends.python.operands import as_array
from gradir.frontends.python.pytrees import Structure, flatten, unflatten
from gradir.frontends.python.trace import MODES, STATE, FunctionTrace, ModuleTrace, current, into, python_location, ssa
from gradir.ir.builder import new_function


@contextmanager
def eager() -> Generator[None]:
    """Run traced functions eagerly, in this thread, for the duration of the block."""
    MODES.count(1)
    STATE.eager += 1
    try:
        yield
    finally:
        STATE.eager -= 1
        MODES.count(-1)


def eager_value_and_grad(function: Callable[..., Any], argnums: int | tuple[int, ...], has_aux: bool, args: tuple[Any, ...]) -> Any:
    """Value and gradients of `function` at concrete arguments; its Python branches may depend on values."""
    with into(None, None):
        leaves, structure, wrt, grad_structure = differentiated_arguments(function, argnums, args)
    structures: list[Structure] = []

    def build(outer: FunctionTrace, inputs: list[Array]) -> list[Array]:
        traced = trace_function(outer.module, function, inputs, structure, parent=outer, recording=True, scalar_first=True, has_aux=has_aux)
        structures.append(traced.structure)
        return request(traced, inputs, wrt)

    arrays = _evaluated(leaves, build)
    (results,) = structures
    return unflatten(results, arrays[: results.leaves]), unflatten(grad_structure, arrays[results.leaves :])


def eager_jvp(function: Callable[..., Any], flat: list[Any], structure: Structure) -> tuple[Any, Any]:
    """`jvp` at concrete primals and tangents (`flat`: one after the other)."""
    with into(None, None):
        leaves = [as_array(x) for x in flat]
    structures: list[Structure] = []

    def build(outer: FunctionTrace, inputs: list[Array]) -> list[Array]:
        half = structure.leaves
        results, found = jvp_request(function, inputs[:half], inputs[half:], structure)
        structures.append(found)
        return results

    arrays = _evaluated(leaves, build)
    (results,) = structures
    return unflatten(results, arrays[: results.leaves]), unflatten(results, arrays[results.leaves :])


def _evaluated(leaves: list[Array], build: Callable[[FunctionTrace, list[Array]], list[Array]], *, recording: bool = True) -> list[Array]:
    """What `build` records for these values, differentiated and evaluated."""
    module = ModuleTrace()
    block = Block(arg_types=[x.type for x in leaves])
    outer = FunctionTrace(module, block, None, recording=recording)
    with into(outer, block):
        results = build(outer, [Array(x.type, v, outer, x.concrete if recording else None) for x, v in zip(leaves, block.args)])
        current()[1].op(func.ReturnOp, [ssa(x) for x in results])
    name = module.fresh("recorded")
    module.module.body.block.add_op(new_function(name, block, [x.type for x in results], loc=python_location()))
    values = evaluate_level1(module.module, name, [x.concrete for x in leaves])
    return [Array(x.type, concrete=v) for x, v in zip(results, values)]


def evaluated_in_trace(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """`function(*args)` traced, not recorded, and evaluated: for what has no values of its own while it is traced."""
    flat, structure = flatten(args)
    with into(None, None):
        leaves = [as_array(x) for x in flat]
    structures: list[Structure] = []

    def build(outer: FunctionTrace, inputs: list[Array]) -> list[Array]:
        results, found = flatten(function(*unflatten(structure, inputs)))
        structures.append(found)
        return [as_array(x) for x in results]

    arrays = _evaluated(leaves, build, recording=False)
    return unflatten(structures[0], arrays)


def to_numpy(tree: Any) -> Any:
    """Arrays of an eager result as numpy arrays."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [x.concrete if isinstance(x, Array) else x for x in leaves])


__all__ = ["eager", "eager_jvp", "eager_value_and_grad", "evaluated_in_trace", "to_numpy"]
