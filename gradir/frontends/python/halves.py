"""The compiled halves of a derivative, for calls outside of any trace: the function with what it saves, the maps that read it.

One request (`ad.vjp` with `split`) gives `@f.fwd` and `@f.bwd`; the transpose of `@f.bwd` is the linear map of forward mode. Each is
compiled when it is first used and kept with the function, by structure, shapes and types of the arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Attribute, Block, SSAValue

from gradir.dialects import ad, nd
from gradir.dialects.types import has_derivative, is_static
from gradir.driver.compile import compile_module
from gradir.driver.lower import run_passes
from gradir.driver.pipelines import Request
from gradir.driver.report import CompileReport
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.custom_rules import checkpoint
from gradir.frontends.python.functions import Traced, trace_function
from gradir.frontends.python.kept import kept
from gradir.frontends.python.pytrees import Structure
from gradir.frontends.python.trace import ModuleTrace
from gradir.ir.builder import Builder, new_function
from gradir.ir.structure import function_named

BEFORE = ("inline", "canonicalize", "nd-simplify", "cse", "differentiate")
"""Passes that make the halves; what is left of the road comes when they are compiled."""

Flat = Callable[..., tuple[Any, ...]]


@dataclass
class Halves:
    """`run(*leaves)` gives results, then residuals; `back(*residuals, *cotangents)` and `along(*residuals, *tangents)` are linear."""

    module: ModuleOp
    traced: Traced
    inputs: tuple[Attribute, ...]

    @functools.cached_property
    def run(self) -> Flat:
        """The function, with what it saves behind its results."""
        return _compiled(self.module, self._name("fwd"))

    @functools.cached_property
    def back(self) -> Flat:
        """Cotangents of the moving arguments from those of the moving results."""
        return _compiled(self.module, self._name("bwd"))

    @functools.cached_property
    def along(self) -> Flat:
        """Tangents of the moving results from those of the moving arguments: the transpose of `back`."""
        module = self.module.clone()
        name = self._name("bwd")
        inputs, outputs = function_named(module, name).function_type.inputs.data, function_named(module, name).function_type.outputs.data
        saved = inputs[: len(inputs) - sum(has_derivative(x.type) for x in self.traced.outputs)]
        block = Block(arg_types=[*saved, *outputs])
        weights: list[SSAValue] = []
        for x in (x for x in self.traced.outputs if has_derivative(x.type)):  # the map is linear in them: where it is read does not count
            zeros: Any = nd.ConstantOp.make(np.zeros(x.shape, x.dtype))
            block.add_op(zeros)
            weights.append(zeros.result)
        request = ad.VjpOp.make(
            name, [*block.args[: len(saved)], *weights, *block.args[len(saved) :]], range(len(saved), len(inputs)), outputs
        )
        block.add_op(request)
        made = f"{self.traced.name}.along"
        _finish(module, block, request.results[len(outputs) :], made)
        run_passes(module, [Request("differentiate")], CompileReport())
        return _compiled(module, made)

    def _name(self, half: str) -> str:
        return f"{self.traced.name}.{half}"


def halves(
    function: Callable[..., Any], leaves: Sequence[Array], structure: Structure, variant: Any, made: Callable[[], Callable[..., Any]]
) -> Halves:
    """The halves of `made()`, the `variant` of `function`, for arguments of this structure and these types; kept with `function`."""
    key = (variant, structure, *(x.type for x in leaves))
    return kept(function, key, lambda: _halves(made(), leaves, structure))


def _halves(function: Callable[..., Any], leaves: Sequence[Array], structure: Structure) -> Halves:
    """What is saved has sizes that a caller knows before the call; of a loop whose trips only the run tells, the arguments are saved."""
    found = _split(function, leaves, structure)
    saved = function_named(found.module, f"{found.traced.name}.fwd").function_type.outputs.data
    return found if all(map(is_static, saved)) else _split(checkpoint(function), leaves, structure)


def _split(function: Callable[..., Any], leaves: Sequence[Array], structure: Structure) -> Halves:
    trace = ModuleTrace()
    traced = trace_function(trace, function, [Array(x.type) for x in leaves], structure)
    inputs, outputs = [x.type for x in leaves], [x.type for x in traced.outputs]
    block = Block(arg_types=[*inputs, *outputs])
    wrt = [k for k, kind in enumerate(inputs) if has_derivative(kind)]
    request = ad.VjpOp.make(traced.name, list(block.args), wrt, outputs)
    request.properties["split"] = UnitAttr()
    block.add_op(request)
    _finish(trace.module, block, request.results, "request")
    run_passes(trace.module, [Request(name) for name in BEFORE], CompileReport())
    return Halves(trace.module, traced, tuple(inputs))


def _finish(module: ModuleOp, block: Block, results: Sequence[Any], name: str) -> None:
    """Append the public function of `block`."""
    Builder(block).op(ReturnOp, results)
    module.body.block.add_op(new_function(name, block, [v.type for v in results]))


def _compiled(module: ModuleOp, name: str) -> Flat:
    return compile_module(module, entry=name)[name].flat
