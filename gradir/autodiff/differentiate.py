"""`differentiate`: every `ad.*` request becomes a call of a generated level-1 function.

The worklist and the checks of requests are here; `reverse/` builds the functions, `rules/` holds the derivatives of the ops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr, TensorType
from xdsl.ir import Operation, SSAValue

from gradir.autodiff.batching.calls import batched_function
from gradir.autodiff.forward.sweep import forward_function
from gradir.autodiff.registry import load_rules
from gradir.autodiff.reverse.functions import Program
from gradir.autodiff.tensors import is_differentiable
from gradir.dialects import ad, nd
from gradir.dialects.types import is_float
from gradir.dialects.upstream import func
from gradir.ir.passes import Pass, PassContext, error_at

REQUESTS = (ad.ValueAndGradOp, ad.GradOp, ad.VjpOp, ad.JvpOp, ad.BatchOp)


@dataclass(frozen=True)
class Differentiate(Pass):
    """Before: level 1, functions may hold `ad.value_and_grad`, `ad.grad`, `ad.vjp`, `ad.jvp`. After: level 1 without them.

    Each request is a call of a generated function that stands beside the one it differentiates, equal requests share it, and
    `ad.stop_gradient` is gone. Requests inside a callee are resolved before a request on it, so any order of derivative works.

    ```mlir
    %l, %dw = ad.value_and_grad @loss(%w, %x) wrt [0] : (tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)
    // becomes
    %l, %dw = func.call @loss.grad_0(%w, %x) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)
    ```
    """

    NAME: ClassVar[str] = "differentiate"

    strong_zero: bool = True
    """In a derivative 0 * d = 0 for every d, infinities and NaN included; false leaves IEEE products (0 * inf = NaN)."""

    def apply(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, ModuleOp)
        if not any(isinstance(o, (*REQUESTS, ad.StopGradientOp, ad.RuledCall)) for o in op.walk()):
            return
        load_rules()
        before = {id(f) for f in op.body.block.ops}
        Resolver(Program(op)).run()
        for o in list(op.walk()):
            if isinstance(o, ad.StopGradientOp):
                o.result.replace_all_uses_with(o.operand)
                o.detach()
                o.erase()
            elif isinstance(o, ad.RuledCall):
                _call_instead(o, o.rule("callee"), list(o.operands))
        if not self.strong_zero:
            _weaken(op, before)


class Resolver:
    """One worklist: a function is done when the requests in it and in everything it calls are done."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.done: set[str] = set()
        self.active: list[str] = []
        self.made: dict[tuple[object, ...], str] = {}

    def run(self) -> None:
        for function in list(self.program.functions.values()):
            self.function(function)

    def function(self, function: func.FuncOp) -> None:
        """Resolve the requests in `function`, callees first."""
        name = function.sym_name.data
        if name in self.done or name in self.active:
            return
        self.active.append(name)
        for op in list(function.walk()):
            if isinstance(op, (func.CallOp, ad.RuledCall, *REQUESTS)):
                names = op.functions() if isinstance(op, ad.RuledCall) else [op.callee.string_value()]
                for callee in (f for f in map(self.program.functions.get, names) if f is not None):
                    if isinstance(op, REQUESTS) and callee.sym_name.data in self.active:
                        raise error_at(
                            op,
                            f"@{callee.sym_name.data} asks for its own derivative",
                            part="autodiff",
                            code="AD006",
                            expected="requests without cycles",
                            found=" -> ".join(f"@{n}" for n in [*self.active, callee.sym_name.data]),
                        )
                    self.function(callee)
            if isinstance(op, REQUESTS):
                self.request(op)
        self.active.pop()
        self.done.add(name)

    def request(self, op: ad.Request) -> None:
        """Replace one request by a call."""
        primal = self.program.function(op.callee.string_value(), op)
        wrt = tuple(int(k) for k in op.wrt.get_values())
        kinds = primal.function_type.outputs.data
        if not isinstance(op, ad.BatchOp):
            self._check(op, primal, wrt)
        stem = primal.sym_name.data
        label = f"{op.name} @{stem} wrt {list(wrt)}"
        key = (op.name, stem, wrt, op.lanes if isinstance(op, ad.BatchOp) else None)
        if key not in self.made:
            if isinstance(op, ad.VjpOp):
                seeds = [k for k, kind in enumerate(kinds) if is_differentiable(kind)]
                self.made[key] = self.program.combined(
                    primal, wrt, seeds=seeds, given=True, name=f"{stem}.vjp_{self._count(stem)}", request=label
                )
                if "split" in op.properties:
                    flags = tuple(k in wrt for k in range(len(primal.body.block.args)))
                    self.program.split(
                        primal, flags, tuple(k in seeds for k in range(len(kinds))), label, names=(f"{stem}.fwd", f"{stem}.bwd")
                    )
                    self._publish(f"{stem}.fwd", f"{stem}.bwd")
            elif isinstance(op, ad.BatchOp):
                assert op.lanes is not None
                self.made[key] = batched_function(self.program, primal, tuple(k in wrt for k in range(len(op.args))), op.lanes)
            elif isinstance(op, ad.JvpOp):
                self.made[key] = self._forward(primal, wrt, label)
            else:
                values = isinstance(op, ad.ValueAndGradOp)
                name = f"{stem}.grad_{self._count(stem)}"
                self.made[key] = self.program.combined(primal, wrt, seeds=[0], given=False, name=name, request=label, keep_results=values)
        _call_instead(op, self.made[key], _operands(op, wrt))

    def _forward(self, primal: func.FuncOp, wrt: tuple[int, ...], label: str) -> str:
        flags = tuple(k in wrt for k in range(len(primal.body.block.args)))
        wanted = tuple(is_differentiable(kind) for kind in primal.function_type.outputs.data)
        return forward_function(self.program, primal, flags, wanted, label)

    def _count(self, stem: str) -> int:
        return sum(1 for key in self.made if key[1] == stem)

    def _publish(self, *names: str) -> None:
        """The halves of a split vjp are for the embedding program: public."""
        for name in names:
            self.program.functions[name].properties.pop("sym_visibility", None)

    def _check(self, op: ad.Request, primal: func.FuncOp, wrt: tuple[int, ...]) -> None:
        inputs = primal.function_type.inputs.data
        kinds = primal.function_type.outputs.data
        for k in wrt:
            if not 0 <= k < len(inputs):
                raise error_at(
                    op, f"wrt names argument {k}", part="autodiff", code="AD002", expected=f"0 to {len(inputs) - 1}", found=str(k)
                )
            if not is_differentiable(inputs[k]):
                raise error_at(
                    op,
                    f"argument {k} of @{primal.sym_name.data} has no derivative",
                    part="autodiff",
                    code="AD002",
                    expected="a tensor of floating-point elements",
                    found=str(inputs[k]),
                    hint="leave it out of wrt: integer and boolean arguments pass through",
                )
        if isinstance(op, ad.VjpOp | ad.JvpOp):
            return
        kind = kinds[0] if kinds else None
        if not isinstance(kind, TensorType) or not is_float(kind.element_type) or kind.get_shape() != ():
            raise error_at(
                op,
                f"the first result of @{primal.sym_name.data} is not a real scalar",
                part="autodiff",
                code="AD003",
                expected="tensor<f32> (or another floating-point scalar)",
                found=str(kind) if kind is not None else "no result",
                hint="reduce it to a scalar, or ask for ad.vjp with a cotangent",
            )


def _call_instead(op: Operation, callee: str, operands: list[SSAValue]) -> None:
    """Replace an op by a call with the same results."""
    call = func.CallOp.create(
        operands=operands,
        result_types=[r.type for r in op.results],
        properties={"callee": SymbolRefAttr(callee)},
        location=op.location,
    )
    block = op.parent
    assert block is not None
    block.insert_op_before(call, op)
    for old, new in zip(op.results, call.results):
        old.replace_all_uses_with(new)
        new.name_hint = old.name_hint
    op.detach()
    op.erase()


def _operands(op: ad.Request, wrt: tuple[int, ...]) -> list[SSAValue]:
    """Operands of the call: tangents go in the order of the arguments."""
    if not isinstance(op, ad.JvpOp):
        return list(op.operands)
    count = len(op.operands) - len(wrt)
    tangents = dict(zip(wrt, op.operands[count:]))
    return [*op.operands[:count], *(tangents[k] for k in sorted(wrt))]


def _weaken(module: ModuleOp, before: set[int]) -> None:
    """IEEE products in the generated functions, for those who want the NaN."""
    for function in module.body.block.ops:
        if id(function) in before:
            continue
        for op in list(function.walk()):
            if isinstance(op, nd.MulStrongOp):
                new = nd.MulOp.create(operands=list(op.operands), result_types=[op.result.type], location=op.location)
                assert op.parent is not None
                op.parent.insert_op_before(new, op)
                op.result.replace_all_uses_with(new.results[0])
                op.detach()
                op.erase()


__all__ = ["Differentiate", "Resolver"]
