"""Replace calls by the bodies of their callees, callees first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.dialects.builtin import CallSiteLoc, LocationAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from gradir.dialects.upstream.func import CallOp, FuncOp, ReturnOp
from gradir.ir.locations import is_unknown
from gradir.ir.passes import Pass, PassContext, error_at
from gradir.lowering.size_names import fresh_names, rename_sizes

KEEP = ("no_inline", "gradir.kernel")
"""Attributes of a function whose calls stay: asked for by hand, and outlined kernels."""

_set: Any = object.__setattr__


@dataclass(frozen=True)
class Inline(Pass):
    """Before and after: levels 1 and 2. No call is left of a function with a one-block body, kernels and `no_inline` excepted.

    Callees themselves stay (`symbol-dce` removes private ones); an inlined op has the location `callsite(callee at call)`.
    A recursive call is GR040: nothing at these levels could stop it.

    ```mlir
    func.func private @sq(%a: tensor<f32>) -> tensor<f32> { %0 = nd.mul %a, %a : tensor<f32> return %0 : tensor<f32> }
    %1 = call @sq(%x) : (tensor<f32>) -> tensor<f32>      // becomes %1 = nd.mul %x, %x : tensor<f32>
    ```
    """

    NAME: ClassVar[str] = "inline"

    def apply(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, ModuleOp)
        functions = {f.sym_name.data: f for f in op.body.block.ops if isinstance(f, FuncOp)}
        calls = {name: [c for c in f.walk() if isinstance(c, CallOp)] for name, f in functions.items()}
        for name in _callees_first(functions, calls):
            for call in calls[name]:
                callee = functions.get(call.callee.root_reference.data)
                if callee is not None and _inlinable(callee):
                    inline_call(call, callee)


def inline_call(call: CallOp, callee: FuncOp) -> None:
    """Put a copy of the callee's one block in place of `call`."""
    block = call.parent
    body = callee.body.first_block
    assert block is not None and body is not None
    values: dict[SSAValue, SSAValue] = dict(zip(body.args, call.operands))
    locations: dict[LocationAttr, LocationAttr] = {}
    names = fresh_names(call, callee)
    for op in body.ops:
        if isinstance(op, ReturnOp):
            for old, new in zip(call.results, op.operands):
                replacement = values.get(new, new)
                if replacement.name_hint is None:
                    replacement.name_hint = old.name_hint
                old.replace_all_uses_with(replacement)
            continue
        copy = op.clone(values)
        for inner in copy.walk():
            inner.location = _called_from(inner.location, call.location, locations)
        if names:
            rename_sizes(copy, names)
        block.insert_op_before(copy, call)
    call.detach()
    call.erase()


def _inlinable(callee: FuncOp) -> bool:
    entry = callee.body.first_block
    if entry is None or entry.next_block is not None or not isinstance(entry.last_op, ReturnOp):
        return False
    return not any(name in callee.attributes or name in callee.properties for name in KEEP)


def _called_from(inner: LocationAttr, call: LocationAttr, known: dict[LocationAttr, LocationAttr]) -> LocationAttr:
    """`callsite(inner at call)`; the attribute's verifier is skipped, both parts are locations."""
    if is_unknown(inner) or is_unknown(call):
        return call if is_unknown(inner) else inner
    found = known.get(inner)
    if found is None:
        found = CallSiteLoc.__new__(CallSiteLoc)
        _set(found, "callee", inner)
        _set(found, "caller", call)
        known[inner] = found
    return found


def _callees_first(functions: dict[str, FuncOp], calls: dict[str, list[CallOp]]) -> list[str]:
    """Names in an order in which every callee precedes its callers; a cycle is an error at the call that closes it."""
    order: list[str] = []
    state: dict[str, bool] = {}  # False: on the path, True: done
    for root in functions:
        if root in state:
            continue
        state[root] = False
        path = [(root, iter(calls[root]))]
        while path:
            name, rest = path[-1]
            call = next(rest, None)
            if call is None:
                state[name] = True
                order.append(name)
                path.pop()
                continue
            callee = call.callee.root_reference.data
            if callee not in functions or state.get(callee):
                continue
            if callee in state:
                cycle = [step for step, _ in path]
                cycle = [*cycle[cycle.index(callee) :], callee]
                raise error_at(
                    call,
                    f"@{callee} calls itself",
                    part="graph",
                    code="GR040",
                    expected="calls without a cycle",
                    found=" -> ".join(f"@{step}" for step in cycle),
                    hint="write the repetition as scf.while or scf.for (Python: gradir.while_loop, gradir.fori_loop)",
                )
            state[callee] = False
            path.append((callee, iter(calls[callee])))
    return order
