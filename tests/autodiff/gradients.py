"""Derivatives of modules against central differences in f64 through the reference evaluator; the request under test; both modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block

from gradir.autodiff.differentiate import Differentiate
from gradir.dialects import ad
from gradir.ir.builder import Builder, new_function
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, verify_module
from gradir.reference import run

Array = np.ndarray[Any, Any]


def in_f64(text: str) -> str:
    """The same program in double precision."""
    return text.replace("f32", "f64").replace("bf16", "f64").replace("f16", "f64")


def promoted(inputs: Sequence[Array]) -> list[Array]:
    return [x.astype(np.float64) if x.dtype.kind in "fV" else x for x in inputs]


def with_vjp(text: str, wrt: Sequence[int]) -> ModuleOp:
    """The module with a public `@vjp(args, cotangents) -> (results, gradients)`, differentiated and verified."""
    module = parse_module(text)
    (f,) = [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data == "f"]
    inputs, outputs = f.function_type.inputs.data, f.function_type.outputs.data
    block = Block(arg_types=[*inputs, *outputs])
    builder = Builder(block)
    op = ad.VjpOp.make("f", list(block.args), wrt, outputs)
    block.add_op(op)
    builder.op(ReturnOp, list(op.results))
    module.body.block.add_op(new_function("vjp", block, [r.type for r in op.results]))
    Differentiate().apply(module, PassContext())
    verify_module(module)
    assert not any(isinstance(o, ad.Request) for o in module.walk())
    return module


def with_both_modes(text: str, wrt: Sequence[int]) -> ModuleOp:
    """The module with public `@vjp` as in `with_vjp`, and `@jvp(args, tangents of wrt) -> (results, tangents of float results)`."""
    module = with_vjp(text, wrt)
    (f,) = [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data == "f"]
    inputs, outputs = f.function_type.inputs.data, f.function_type.outputs.data
    block = Block(arg_types=[*inputs, *(inputs[k] for k in wrt)])
    op = ad.JvpOp.make("f", list(block.args), wrt, outputs)
    block.add_op(op)
    Builder(block).op(ReturnOp, list(op.results))
    module.body.block.add_op(new_function("jvp", block, [r.type for r in op.results]))
    Differentiate().apply(module, PassContext())
    verify_module(module)
    return module


def reverse(text: str, inputs: Sequence[Array], cts: Sequence[Array], wrt: Sequence[int]) -> list[Array]:
    """Cotangents of the arguments in `wrt`."""
    module = with_vjp(text, wrt)
    return run(module, "vjp", [*inputs, *cts])[len(cts) :]


def cotangents(text: str, inputs: Sequence[Array], seed: int) -> list[Array]:
    """Random cotangents of the results (zeros for integers)."""
    rng = np.random.default_rng(seed)
    results = run(parse_module(text), "f", inputs)
    return [
        rng.standard_normal(r.shape).astype(r.dtype) if r.dtype.kind == "f" else np.zeros(r.shape, r.dtype)
        for r in map(np.asarray, results)
    ]


def central_differences(text: str, inputs: Sequence[Array], cts: Sequence[Array], wrt: int, step: float = 1e-6) -> Array:
    """d sum(ct * f) / d inputs[wrt], element by element."""
    module = parse_module(text)

    def results(at: Array) -> list[Array]:
        return run(module, "f", [at if k == wrt else x for k, x in enumerate(inputs)])

    def difference(up: Array, down: Array) -> float:
        """sum ct * (f(up) - f(down)); a result that does not move, an infinity included, adds nothing."""
        pairs = [(c, a, b) for c, a, b in zip(cts, results(up), results(down)) if c.dtype.kind == "f"]
        return float(sum(np.sum(c * np.subtract(a, b, out=np.zeros_like(a), where=a != b)) for c, a, b in pairs))

    x = np.asarray(inputs[wrt], np.float64)
    out = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        h = step * max(1.0, abs(x[index]))
        up, down = x.copy(), x.copy()
        up[index] += h
        down[index] -= h
        out[index] = difference(up, down) / (2 * h)
    return out


def error(found: Array, expected: Array) -> float:
    """max |a - b| / max |b|"""
    scale = float(np.max(np.abs(expected), initial=0.0))
    return float(np.max(np.abs(found - expected), initial=0.0)) / (scale or 1.0)


__all__ = ["central_differences", "cotangents", "error", "in_f64", "promoted", "reverse", "with_vjp"]


def check_both_modes(text: str, inputs: list[Array], step: float = 1e-6) -> ModuleOp:
    """Reverse mode against central differences, forward mode against reverse mode; the module with `@vjp` and `@jvp`."""
    wrt = range(len(inputs))
    cts = cotangents(text, inputs, 1)
    module = with_both_modes(text, wrt)
    gradients = run(module, "vjp", [*inputs, *cts])[len(cts) :]
    for k in wrt:
        assert error(np.asarray(gradients[k]), central_differences(text, inputs, cts, k, step)) < 1e-7
    rng = np.random.default_rng(2)
    tangents = [rng.standard_normal(x.shape) for x in inputs]
    moved = run(module, "jvp", [*inputs, *tangents])[len(cts) :]
    forwards = sum(float(np.sum(c * t)) for c, t in zip(cts, moved, strict=True))
    backwards = sum(float(np.sum(g * t)) for g, t in zip(gradients, tangents, strict=True))
    assert abs(forwards - backwards) <= 1e-10 * max(1.0, abs(backwards))
    return module
