"""Functions of the user inside of programs: registered once under a name, called like any other function.

`register_custom_call` tells the compiler (types, derivative, effects, targets) and the runtime (what to call) about a name at once;
`custom_call` records a call. A saved program finds the name again when it is loaded: the process that loads it registers it first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import StringAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, SSAValue

from gradir.dialects import custom_calls, nd
from gradir.dialects.types import element_type, tensor
from gradir.errors import GradirError
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.operands import as_array, supported_dtype
from gradir.frontends.python.trace import FunctionTrace, ModuleTrace, apply_several, into, ssa, user_error
from gradir.runtime import library

Rule = Callable[..., Any]


def register_custom_call(
    name: str,
    function: Any = None,
    *,
    shape: Rule | None = None,
    vjp: Rule | None = None,
    effects: bool = False,
    kernels: Mapping[str, Any] | None = None,
) -> None:
    """Let programs call `function` as `custom_call(name, *arrays, **config)`

    `function`: `f(*arrays, **config)` on numpy arrays, which it must not change, or a C function (a ctypes function pointer, a PyCapsule,
    or a pair of a shared library's path and a symbol; `gradir.runtime.abi` has its signature), called without Python.
    `shape(*specs, **config)` gives the `Spec` of the result, or a tuple of several; without it calls say `result=`. `vjp(inputs, results,
    cotangents, **config)` gives one cotangent or None per input, by functions of gradir; without it a derivative is an error (AD009).
    `effects`: calls keep their place and are never removed. `kernels`: functions for other targets than the CPU, `{"cuda": ...}`.
    """
    table = {"cpu": function} if function is not None else {}
    table |= dict(kernels or {})
    if not name or not table or any(target not in ("cpu", "cuda") for target in table):
        raise user_error(
            "a custom call needs a name and a function",
            code="GR117",
            op="nd.custom_call",
            expected='a name and a function for "cpu" or "cuda"',
            found=f"{name!r}, {', '.join(table) or 'no function'}",
        )
    row = library.register(name, table["cpu"]) if "cpu" in table else None
    custom_calls.define(
        custom_calls.CustomCall(
            name,
            _meaning(name, table.get("cpu"), row),
            None if shape is None else _infer(name, shape),
            None if vjp is None else _derivative(name, vjp),
            effects,
            frozenset(table),
            _version(shape, vjp, effects, sorted(table)),
        )
    )


def custom_call(name: str, *operands: Any, result: Any = None, **config: Any) -> Any:
    """The results of the registered function `name` on arrays; `result` is the `Spec` (or a tuple of them) where it has no shape rule"""
    row = custom_calls.find(name)
    arrays = [as_array(x) for x in operands]
    if row is None:
        raise user_error(
            f"no function is registered as {name!r}",
            code="GR117",
            op="nd.custom_call",
            expected=f"one of {custom_calls.known()}",
            found=repr(name),
            hint=f"gradir.register_custom_call({name!r}, function) before",
        )
    try:
        attribute = custom_calls.config_attribute(config)
    except TypeError as error:
        raise user_error(
            f"{name}: the configuration holds {error}",
            code="GR117",
            op="nd.custom_call",
            expected="texts, numbers, truth values, and lists of them",
            found=", ".join(f"{key}={value!r}" for key, value in config.items())[:80],
            hint="arrays are operands",
        ) from None
    kinds, single = _result_types(row, arrays, result, custom_calls.config_value(attribute))
    properties: dict[str, Attribute] = {"callee": StringAttr(name)}
    if config:
        properties["config"] = attribute
    if row.effects:
        properties["effects"] = UnitAttr()
    made = apply_several(nd.CustomCallOp, arrays, kinds, **properties)
    return made[0] if single else tuple(made)


def _result_types(
    row: custom_calls.CustomCall, arrays: Sequence[Array], result: Any, config: custom_calls.Config
) -> tuple[list[TensorType], bool]:
    """The types of the results, and whether there is one alone."""
    if result is not None:
        kinds = [_type(row.name, one) for one in (result if isinstance(result, tuple | list) else (result,))]
        single = not isinstance(result, tuple | list)
    elif row.infer is not None:
        kinds = []
        single = True
    else:
        raise user_error(
            f"{row.name} has no shape rule, and the call names no result",
            code="GR117",
            op="nd.custom_call",
            expected="result=gradir.Spec(shape, dtype)",
            found="none",
            hint="or register it with shape=rule",
        )
    if row.infer is None:
        return kinds, single
    try:
        inferred = cast("list[TensorType]", list(row.infer([x.type for x in arrays], config)))
    except ValueError as error:
        raise user_error(
            f"{row.name}: {error}",
            code="GR117",
            op="nd.custom_call",
            expected="operands that its shape rule takes",
            found=", ".join(str(x.type) for x in arrays),
        ) from error
    if result is not None and inferred != kinds:
        raise user_error(
            f"{row.name}: result= differs from its shape rule",
            code="GR117",
            op="nd.custom_call",
            expected=", ".join(map(str, inferred)),
            found=", ".join(map(str, kinds)),
        )
    return inferred, len(inferred) == 1


def _type(name: str, spec: Any) -> TensorType:
    """The tensor type of a `Spec`, of anything with a shape and a dtype, or of a pair of them."""
    shape, dtype = (
        cast("tuple[Any, Any]", spec)
        if isinstance(spec, tuple) and len(spec) == 2
        else (getattr(spec, "shape", None), getattr(spec, "dtype", None))
    )
    if shape is None or dtype is None:
        raise ValueError(f"the shape rule of {name} gives {spec!r}, expected gradir.Spec(shape, dtype)")
    return tensor(element_type(supported_dtype(dtype)), tuple(shape))


def _infer(name: str, rule: Rule) -> custom_calls.Infer:
    def infer(operands: Sequence[Attribute], config: custom_calls.Config) -> Sequence[Attribute]:
        try:
            found = rule(*(Array(cast("TensorType", kind)) for kind in operands), **config)
        except GradirError:
            raise
        except Exception as error:
            raise ValueError(f"its shape rule failed: {type(error).__name__}: {error}") from error
        several = isinstance(found, list) or (isinstance(found, tuple) and not isinstance(found[0] if found else None, tuple | list))
        return [_type(name, spec) for spec in (found if several else (found,))]

    return infer


def _meaning(name: str, function: Any, row: library.Row | None) -> custom_calls.Meaning:
    """The function as the reference evaluator calls it."""

    def evaluate(config: custom_calls.Config, shapes: Sequence[Any], *arrays: Any) -> Sequence[Any]:
        if row is None:
            raise GradirError(
                f"@{name} has no function for the CPU",
                part="operator",
                code="OP052",
                op="nd.custom_call",
                expected="a function for cpu, which the evaluator runs",
                found="none",
                hint="register one, in numpy",
            )
        views = [_read_only(array) for array in arrays]
        if row.writer is not None:
            return library.as_tuple(function(*views, **config))
        from gradir.runtime.library.table import call_c

        outputs = [np.zeros([0 if n is None else n for n in sizes], dtype) for sizes, dtype in shapes]
        status = call_c(row.address, dict(config), views, outputs)
        if status:
            raise GradirError(
                f"@{name} failed with status {status}",
                part="runtime",
                code="RT032",
                op="nd.custom_call",
                expected="status 0",
                found=f"status {status}",
            )
        return outputs

    return evaluate


def _read_only(array: Any) -> Any:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def _derivative(name: str, rule: Rule) -> Any:
    """A rule written with functions of gradir, as `differentiate` calls it: recorded where the derivative is built."""

    def vjp(t: Any, op: nd.CustomCallOp, cts: Any) -> list[SSAValue | None]:
        given = cts if isinstance(cts, tuple) else (cts,)
        trace = FunctionTrace(ModuleTrace(), t.builder.block, None)

        def array(value: SSAValue) -> Array:
            return Array(cast("TensorType", value.type), value, trace)

        with into(trace, t.builder.block):
            zeros = [ct if ct is not None else t.zeros(value.type) for ct, value in zip(given, op.results)]
            inputs, results, cotangents = ([array(v) for v in values] for values in (op.operands, op.results, zeros))
            single = len(results) == 1
            found = rule(inputs, results[0] if single else results, cotangents[0] if single else cotangents, **op.settings)
            values = list(found) if isinstance(found, tuple | list) else [found]
            made = [None if value is None else as_array(value) for value in values]
            _check_cotangents(name, op, made)
            return [None if value is None else ssa(value) for value in made]

    return vjp


def _check_cotangents(name: str, op: nd.CustomCallOp, found: Sequence[Array | None]) -> None:
    expected = [value.type for value in op.operands]
    good = len(found) == len(expected) and all(value is None or value.type == kind for value, kind in zip(found, expected))
    if not good:
        raise GradirError(
            f"the derivative rule of @{name} gives other cotangents than the call has inputs",
            part="autodiff",
            code="AD011",
            op=op.name,
            expected="one per input, of its type, or None: " + ", ".join(map(str, expected)),
            found=", ".join("None" if value is None else str(value.type) for value in found) or "none",
            hint="convert and sum the cotangents to the types of the inputs",
        )


def _version(*parts: Any) -> str:
    """A text that changes when a program that calls the function could change: by its shape rule, its derivative, its effects."""
    total = hashlib.sha256()
    for part in parts:
        total.update(_fingerprint(part).encode())
    return total.hexdigest()[:16]


def _fingerprint(value: Any, depth: int = 0) -> str:
    """Code, constants and captured values of a function; the identity of anything that has no readable text."""
    code = getattr(value, "__code__", None)
    if code is not None and depth < 8:
        names = [*code.co_names, *code.co_varnames]
        constants = [_fingerprint(c, depth + 1) for c in code.co_consts]
        cells = [_fingerprint(_cell(cell), depth + 1) for cell in getattr(value, "__closure__", None) or ()]
        defaults = _fingerprint(getattr(value, "__defaults__", None), depth + 1)
        return repr((code.co_code, names, constants, cells, defaults))
    if hasattr(value, "co_code"):
        return repr((value.co_code, value.co_names, [_fingerprint(c, depth + 1) for c in value.co_consts]))
    if isinstance(value, str | bytes | int | float | bool | type(None)):
        return repr(value)
    if isinstance(value, tuple | list) and depth < 8:
        return repr([_fingerprint(v, depth + 1) for v in cast("Sequence[Any]", value)])
    return f"{type(value).__qualname__} at {id(value)}"


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None
