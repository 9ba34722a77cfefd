"""Control flow on values: `cond`, `switch`, `fori_loop`, `while_loop`, `scan` become `scf` regions, whose size does not depend on trip
counts. Under `gradir.eager()` they are ordinary Python.

A body sees arrays of the enclosing function directly; what it returns must keep the structure, shapes and types of its state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, TensorType, f64, i1, i32, i64
from xdsl.ir import Attribute, Block, Region, SSAValue

from gradir.dialects import nd
from gradir.dialects.types import shape_of, tensor
from gradir.dialects.upstream import arith, scf, tensor as upstream_tensor
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.dims import Dim
from gradir.frontends.python.elementwise import minimum
from gradir.frontends.python.operands import as_array, astype
from gradir.frontends.python.pytrees import Structure, flatten, paths, unflatten
from gradir.frontends.python.residuals import residual_choice
from gradir.frontends.python.run_time_sizes import size_operands, size_value
from gradir.frontends.python.shape import stack
from gradir.frontends.python.sizes import size, whole
from gradir.frontends.python.trace import STATE, current, into, python_location, ssa, tracing, user_error

INDEX = IndexType()


def _index(n: Any) -> SSAValue:
    if isinstance(n, Dim):
        return size_value(str(n))
    _, builder = current()
    return builder(arith.ConstantOp, [], [INDEX], {"value": IntegerAttr(n, INDEX)})


def _to_index(x: Any) -> SSAValue:
    """A loop bound: a Python integer, or a rank-0 integer array."""
    if not isinstance(x, Array):
        return _index(size("a loop bound", x, None))
    if x.ndim != 0 or x.dtype.kind not in "iu":
        raise user_error("a loop bound must be a rank-0 integer", code="GR106", op="scf.for", expected="an integer", found=str(x.type))
    _, builder = current()
    value = ssa(astype(x, np.int64) if x.dtype.kind == "u" else x)  # index arithmetic is signless
    assert isinstance(value.type, TensorType)
    scalar = builder(upstream_tensor.ExtractOp, [value], [value.type.element_type])
    return builder(arith.IndexCastOp, [scalar], [INDEX])


def _from_index(value: SSAValue) -> Array:
    """The induction variable as a rank-0 i32 array."""
    function, builder = current()
    scalar = builder(arith.IndexCastOp, [value], [i32])
    out = builder(upstream_tensor.FromElementsOp, [scalar], [tensor(i32, ())])
    return Array(out.type, out, function)


def _arrays(tree: Any) -> tuple[list[Array], Structure]:
    leaves, structure = flatten(tree)
    return [as_array(x) for x in leaves], structure


def _wrap(values: Sequence[SSAValue]) -> list[Array]:
    function, _ = current()
    return [Array(v.type, v, function) for v in values if isinstance(v.type, TensorType)]


def _check(name: str, what: str, given: tuple[list[Array], Structure], wanted: Sequence[Attribute], structure: Structure) -> list[Array]:
    """Outputs of a body against the state it must reproduce; Python numbers take the state's type."""
    leaves, got = given
    if got != structure:
        raise user_error(
            f"{name}: {what} changes the structure",
            code="GR107",
            op=name,
            expected=str(structure),
            found=str(got),
            hint="return the same containers: a list stays a list, a tuple a tuple",
        )
    out: list[Array] = []
    for leaf, kind, path in zip(leaves, wanted, paths(structure)):
        if leaf.type != kind:
            raise user_error(
                f"{name}: {what} changes a type{f' at {path}' if path else ''}",
                code="GR107",
                op=name,
                expected=str(kind),
                found=str(leaf.type),
                hint=_hint(name, leaf.type, kind),
            )
        out.append(leaf)
    return out


def _hint(name: str, found: TensorType, wanted: Attribute) -> str:
    """What to do about another element type."""
    if not isinstance(wanted, TensorType) or found.get_shape() != wanted.get_shape():
        return ""
    hint = "convert with astype, or start with an array of the type that the body gives"
    if name in ("cond", "switch"):
        hint = "convert one of the branches with astype"
    return f"{hint}; numpy's numbers, such as np.sqrt(2), are float64: write float(np.sqrt(2))" if found.element_type == f64 else hint


def _condition(what: str, op: str, value: Any) -> Array:
    """`value` as a rank-0 boolean array."""
    test = as_array(value, np.dtype(np.bool_))
    if test.ndim != 0:
        raise user_error(f"{what} must be a scalar", code="GR106", op=op, expected="tensor<i1>", found=str(test.type))
    return test


def _boolean(value: Any) -> Any:
    """The condition of a loop, which must be a truth value: a number that is never quite 0 would go on for ever."""
    dtype = value.dtype if isinstance(value, Array) else np.asarray(value).dtype
    if not promotion.is_bool(dtype):
        raise user_error(
            "while_loop: the condition is no truth value",
            code="GR106",
            op="scf.while",
            expected="bool",
            found=str(dtype),
            hint="compare: x > 0, gd.any(x > 0)",
        )
    return value


def _truth(what: str, op: str, value: Any) -> bool:
    """The value of a condition that is known now."""
    shape = np.shape(value) if not isinstance(value, Array) else value.shape
    if shape != ():
        raise user_error(
            f"{what} must be a scalar", code="GR106", op=op, expected="one truth value", found=f"an array of shape {list(shape)}"
        )
    return bool(value)


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """`true_fn(*operands)` if `pred`, else `false_fn(*operands)`; only the branch taken runs"""
    if isinstance(pred, bool):
        return true_fn(*operands) if pred else false_fn(*operands)
    if not tracing() or (STATE.function is not None and STATE.function.recording):
        return true_fn(*operands) if _truth("cond: the predicate", "scf.if", pred) else false_fn(*operands)
    test = _condition("cond: the predicate", "scf.if", pred)
    _, builder = current()
    builder.loc = at = python_location()
    flag = builder(upstream_tensor.ExtractOp, [ssa(test)], [i1])
    regions, kinds, structure = _regions("cond", {"true_fn": true_fn, "false_fn": false_fn}, operands)
    builder.loc = at
    new = builder.op(scf.IfOp, [flag], kinds, regions=regions)
    return unflatten(structure, _wrap(new.results))


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """`branches[index](*operands)`, index clamped to 0 .. len-1 as in `jax.lax.switch`; only the branch taken runs"""
    last = len(branches) - 1
    if last < 0:
        raise user_error("switch: no branches", code="GR106", op="scf.index_switch", expected="at least one", found="none")
    function = STATE.function
    if not isinstance(index, Array) or function is None or function.recording:
        return branches[min(max(whole("the index of a switch", index), 0), last)](*operands)
    _, builder = current()
    builder.loc = at = python_location()
    if not last:
        return branches[0](*operands)
    if index.dtype.kind == "u" and last <= np.iinfo(index.dtype).max:
        index = minimum(index, last)
    chosen = builder(arith.MaxSIOp, [_to_index(index), _index(0)], [INDEX])
    regions, kinds, structure = _regions("switch", {f"branch {k}": branch for k, branch in enumerate(branches)}, operands)
    builder.loc = at
    *listed, default = regions  # what is too large takes the last branch
    cases = {"cases": DenseArrayBase.from_list(i64, list(range(last)))}
    new = builder.op(scf.IndexSwitchOp, [chosen], kinds, cases, regions=[default, *listed])
    return unflatten(structure, _wrap(new.results))


def _regions(
    name: str, branches: Mapping[str, Callable[..., Any]], operands: tuple[Any, ...]
) -> tuple[list[Region], list[TensorType], Structure]:
    """The branches, by what messages call them, as regions; the types and the structure of what the first one returns, and so all."""
    function, _ = current()
    regions: list[Region] = []
    kinds: list[TensorType] = []
    wanted: Structure | None = None
    for what, branch in branches.items():
        block = Block()
        with into(function, block):
            outputs, structure = _arrays(branch(*operands))
            if wanted is None:
                kinds, wanted = [x.type for x in outputs], structure
            outputs = _check(name, what, (outputs, structure), kinds, wanted)
            current()[1].op(scf.YieldOp, [ssa(x) for x in outputs])
        regions.append(Region(block))
    assert wanted is not None, "there is a branch"
    return regions, kinds, wanted


def fori_loop(lower: Any, upper: Any, body: Callable[[Any, Any], Any], init: Any, residuals: str | None = None) -> Any:
    """state = body(i, state) for i in lower .. upper-1; bounds may be known only at run time

    `residuals`: what reverse mode keeps of it, "all", "none" (carried values only) or "sqrt" (those of every sqrt(N)-th iteration); what is
    not kept runs again. By default as the derivative says.
    """
    attributes = residual_choice(residuals)
    function = STATE.function
    if function is None or function.recording:
        state = init
        for i in range(*(whole("a loop bound", bound) for bound in (lower, upper))):
            state = body(as_array(np.int32(i)), state)
        return state
    carried, structure = _arrays(init)
    _, builder = current()
    builder.loc = at = python_location()
    bounds = [_to_index(lower), _to_index(upper), _index(1)]
    start = [ssa(x) for x in carried]
    kinds = [x.type for x in carried]
    block = Block(arg_types=[INDEX, *kinds])
    with into(function, block):
        current()[1].loc = at
        state = unflatten(structure, _wrap(block.args[1:]))
        outputs = _check("fori_loop", "the body", _arrays(body(_from_index(block.args[0]), state)), kinds, structure)
        current()[1].op(scf.YieldOp, [ssa(x) for x in outputs])
    builder.loc = at
    new = builder.op(scf.ForOp, [*bounds, *start], kinds, regions=[Region(block)], attributes=attributes)
    return unflatten(structure, _wrap(new.results))


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init: Any, residuals: str | None = None) -> Any:
    """state = body_fun(state) while cond_fun(state)

    `residuals`: what reverse mode keeps while it runs the loop again, as for `fori_loop`.
    """
    attributes = residual_choice(residuals)
    function = STATE.function
    if function is None or function.recording:
        state = init
        while _truth("while_loop: the condition", "scf.while", _boolean(cond_fun(state))):
            state = body_fun(state)
        return state
    carried, structure = _arrays(init)
    _, builder = current()
    builder.loc = at = python_location()
    start = [ssa(x) for x in carried]
    kinds = [x.type for x in carried]
    before, after = Block(arg_types=kinds), Block(arg_types=kinds)
    with into(function, before):
        test = _condition("while_loop: the condition", "scf.while", _boolean(cond_fun(unflatten(structure, _wrap(before.args)))))
        flag = current()[1](upstream_tensor.ExtractOp, [ssa(test)], [i1])
        current()[1].op(scf.ConditionOp, [flag, *before.args])
    with into(function, after):
        outputs = _check("while_loop", "the body", _arrays(body_fun(unflatten(structure, _wrap(after.args)))), kinds, structure)
        current()[1].op(scf.YieldOp, [ssa(x) for x in outputs])
    builder.loc = at
    new = builder.op(scf.WhileOp, start, kinds, regions=[Region(before), Region(after)], attributes=attributes)
    return unflatten(structure, _wrap(new.results))


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    residuals: str | None = None,
) -> tuple[Any, Any]:
    """carry, y = f(carry, x) over the leading dimension of `xs`, with `reverse` from its end; returns the last carry and the stacked ys

    `residuals`: what reverse mode keeps of it, as for `fori_loop`.
    """
    attributes = residual_choice(residuals)
    inputs, in_structure = _arrays(xs)
    sizes = {x.shape[0] if x.ndim else None for x in inputs}
    if None in sizes or len(sizes | ({length} if length is not None else set())) != 1:
        raise user_error(
            "scan: leading sizes differ", code="GR001", op="scf.for", expected="one length", found=str(sorted(map(str, sizes)))
        )
    trips = size("the length of a scan", length if length is not None else sizes.pop(), 0)
    function = STATE.function
    if function is None or function.recording:
        carry, ys = init, []
        for k in reversed(range(trips)) if reverse else range(trips):
            carry, y = f(carry, unflatten(in_structure, [x[k] for x in inputs]))
            ys.append(y)
        ys = ys[::-1] if reverse else ys
        leaves = [flatten(y)[0] for y in ys]
        structure = flatten(ys[0])[1] if ys else in_structure
        return carry, unflatten(structure, [stack([row[k] for row in leaves]) for k in range(len(leaves[0]))]) if ys else None
    return _traced_scan(f, init, inputs, in_structure, trips, reverse, attributes)


def _is_pair(result: Any) -> bool:
    return isinstance(result, tuple) and len(result) == 2


def _traced_scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    inputs: list[Array],
    in_structure: Structure,
    trips: Any,
    reverse: bool,
    attributes: Mapping[str, Attribute],
) -> tuple[Any, Any]:
    function, builder = current()
    carried, structure = _arrays(init)
    builder.loc = at = python_location()
    bounds = [_index(0), _index(trips), _index(1)]
    last = builder(arith.SubiOp, [bounds[1], bounds[2]], [INDEX]) if reverse else None
    start = [ssa(x) for x in carried]
    rows = [ssa(x) for x in inputs]
    kinds: list[TensorType] = [x.type for x in carried]
    block = Block(arg_types=[INDEX, *kinds])
    with into(function, block):
        inner = current()[1]
        inner.loc = at
        step = block.args[0] if last is None else inner(arith.SubiOp, [last, block.args[0]], [INDEX])
        sliced = [
            inner(nd.IndexAtOp, [v, step], [tensor(x.type.element_type, shape_of(x.type)[1:])], {"dim": IntegerAttr(0, i64)})
            for v, x in zip(rows, inputs)
        ]
        result = f(unflatten(structure, _wrap(block.args[1:])), unflatten(in_structure, _wrap(sliced)))
        if not _is_pair(result):
            raise user_error(
                "scan: the body must return (carry, y)", code="GR107", op="scf.for", expected="a pair", found=type(result).__name__
            )
        outputs = _check("scan", "the carry", _arrays(result[0]), kinds, structure)
        ys, y_structure = _arrays(result[1])
        inner.loc = at
        stacked = [tensor(y.type.element_type, (trips, *shape_of(y.type))) for y in ys]
        stacks = [block.insert_arg(kind, len(block.args)) for kind in stacked]
        pushed = [inner(nd.UpdateAtOp, [ssa(y), s, step], [s.type], {"dim": IntegerAttr(0, i64)}) for y, s in zip(ys, stacks)]
        inner.op(scf.YieldOp, [*(ssa(x) for x in outputs), *pushed])
    builder.loc = at
    empties = [builder(nd.EmptyOp, size_operands(nd.EmptyOp, kind), [kind]) for kind in stacked]
    new = builder.op(scf.ForOp, [*bounds, *start, *empties], [*kinds, *stacked], regions=[Region(block)], attributes=attributes)
    results = _wrap(new.results)
    return unflatten(structure, results[: len(kinds)]), unflatten(y_structure, results[len(kinds) :])
