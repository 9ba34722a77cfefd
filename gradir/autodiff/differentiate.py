"""`differentiate`: every `ad.*` request becomes a call of a generated level-1 function.

The worklist and the checks of requests are here; `reverse/` builds the functions, `rules/` holds the derivatives of the ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.autodiff.batching.calls import batched_function
from gradir.autodiff.budget import choice_of, chosen_for
from gradir.autodiff.checks import Derivative, Derive, add_checks, pull_by_gradient, pull_by_pair, pull_by_vjp, push_by
from gradir.autodiff.forward.sweep import forward_function
from gradir.autodiff.registry import load_rules
from gradir.autodiff.reverse.functions import Pair, Program
from gradir.autodiff.reverse.report import FACT, Ledger
from gradir.autodiff.scalars import is_strong_product
from gradir.autodiff.tensors import is_differentiable
from gradir.dialects import ad, nd
from gradir.dialects.residuals import BUDGET, POLICY, budget_of, check_choice, policy_of
from gradir.dialects.types import is_float
from gradir.dialects.upstream import arith, func, tensor
from gradir.ir.nesting import room_for
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

    check: bool = False
    """Beside each derivative, private functions that check it: `@f.check_dot_N` forward against reverse mode, `@f.check_fd_N` against
    differences. `--check-semantics` runs them after every later pass; nothing is compiled for them."""

    report_residuals: bool = False
    """List what each derivative keeps for its backward part, how many bytes and why: on stderr under `gradir-opt`."""

    loop_policy: str = "all"
    """What loops keep that do not say it by `gradir.residuals`: `all` that the backward part reads, `none` but the carried values of each
    iteration, which then runs again, or (`sqrt`) the carried values of every ceil(sqrt(N))-th one."""

    budget: int = 0
    """Bytes that the residuals of a derivative may take: loops and calls that do not say what they keep get policies, from `loop-policy`
    on, that fit with the least extra work. A warning where none do; 0 is no limit."""

    def apply(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, ModuleOp)
        check_choice(self.loop_policy, self.budget)
        choice = policy_of(op, self.loop_policy), budget_of(op, self.budget)
        program = Program(op, choice=choice, ledger=Ledger(on=self.report_residuals))
        self._resolve(program)
        if self.report_residuals:
            context.facts[FACT] = program.ledger.report()

    def _resolve(self, program: Program) -> None:
        op = program.module
        for name in (POLICY, BUDGET):  # asked for of this pass
            op.attributes.pop(name, None)
        if not any(isinstance(o, (*REQUESTS, ad.StopGradientOp, ad.RuledCall)) for o in op.walk()):
            return
        load_rules()
        before = {id(f) for f in op.body.block.ops}
        with room_for(len(program.functions)):
            Resolver(program, check=self.check).run()
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

    def __init__(self, program: Program, *, check: bool = False) -> None:
        self.program, self.check = program, check
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
        if not isinstance(op, ad.BatchOp):
            self._refuse(op, primal, wrt)
        stem = primal.sym_name.data
        label = f"{op.name} @{stem} wrt {list(wrt)}"
        key = (op.name, stem, wrt, op.lanes if isinstance(op, ad.BatchOp) else choice_of(self.program, op))
        if isinstance(op, ad.BatchOp):
            assert op.lanes is not None
            if key not in self.made:
                self.made[key] = batched_function(self.program, primal, tuple(k in wrt for k in range(len(op.args))), op.lanes)
        else:
            seeds = [0] if isinstance(op, ad.GradOp | ad.ValueAndGradOp) else _moving(primal)
            with chosen_for(self.program, op, primal, wrt, seeds):
                self._make(op, primal, wrt, label, key)
        _call_instead(op, self.made[key], _operands(op, wrt))

    def _make(self, op: ad.Request, primal: func.FuncOp, wrt: tuple[int, ...], label: str, key: tuple[object, ...]) -> None:
        """The functions that resolve a request, unless an equal one made them."""
        if key not in self.made:
            self.made[key], pull = self._derivative(op, primal, wrt, label)
            if self.check:
                self._add_checks(op, primal, wrt, label, self.made[key], pull)
        split = (*key, "split")
        if isinstance(op, ad.VjpOp) and "split" in op.properties and split not in self.made:
            pair = self._halves(primal, wrt, label)
            self.made[split] = pair.forward
            if self.check:
                self._add_checks(op, primal, wrt, f"{label} split", pair.forward, pull_by_pair(pair, primal, wrt))

    def _derivative(self, op: ad.Request, primal: func.FuncOp, wrt: tuple[int, ...], label: str) -> tuple[str, Derive | None]:
        """The function that the request becomes a call of; how it goes backwards, if it does."""
        stem = primal.sym_name.data
        if isinstance(op, ad.JvpOp):
            return self._forward(primal, wrt, _moving(primal), label), None
        if isinstance(op, ad.VjpOp):
            return self._vjp(primal, wrt, label)
        values = isinstance(op, ad.ValueAndGradOp)
        name = f"{stem}.grad_{self._count(stem)}"
        made = self.program.combined(primal, wrt, seeds=[0], given=False, name=name, request=label, keep_results=values)
        return made, pull_by_gradient(made, primal, wrt, values)

    def _vjp(self, primal: func.FuncOp, wrt: tuple[int, ...], label: str) -> tuple[str, Derive]:
        stem, seeds = primal.sym_name.data, _moving(primal)
        name = f"{stem}.vjp_{self._count(stem)}"
        made = self.program.combined(primal, wrt, seeds=seeds, given=True, name=name, request=label)
        return made, pull_by_vjp(made, primal, wrt, seeds)

    def _halves(self, primal: func.FuncOp, wrt: tuple[int, ...], label: str) -> Pair:
        """Both halves of a split vjp; they are for the embedding program: public."""
        stem, seeds = primal.sym_name.data, _moving(primal)
        flags = tuple(k in wrt for k in range(len(primal.body.block.args)))
        wanted = tuple(k in seeds for k in range(len(primal.function_type.outputs.data)))
        pair = self.program.split(primal, flags, wanted, label, names=(f"{stem}.fwd", f"{stem}.bwd"))
        forward, backward = (self.program.functions[name] for name in (pair.forward, pair.backward))
        saved = _in_tensors(forward, backward, len(wanted))
        for function in (forward, backward):
            function.properties.pop("sym_visibility", None)
        public = replace(pair, residual_types=saved)
        self.program.pairs.update({key: public for key, known in self.program.pairs.items() if known is pair})
        return public

    def _forward(self, primal: func.FuncOp, wrt: Sequence[int], wanted: Sequence[int], label: str) -> str:
        flags = tuple(k in wrt for k in range(len(primal.body.block.args)))
        moved = tuple(k in wanted for k in range(len(primal.function_type.outputs.data)))
        return forward_function(self.program, primal, flags, moved, label)

    def _add_checks(self, op: ad.Request, primal: func.FuncOp, wrt: tuple[int, ...], label: str, made: str, pull: Derive | None) -> None:
        """The checks of a derivative. The other mode is made for them if no request asked for it."""
        seeded = isinstance(op, ad.GradOp | ad.ValueAndGradOp)
        wanted = (0,) if seeded else tuple(_moving(primal))
        if pull is None:
            name, pull = self._vjp(primal, wrt, label)
            self.made[("check", primal.sym_name.data, label)] = name
            forward = made
        else:
            forward = self._forward(primal, wrt, wanted, label)
        push = push_by(forward, primal, wanted)
        add_checks(self.program, Derivative(primal, wrt, wanted, label, push, pull, not isinstance(op, ad.JvpOp), seeded))

    def _count(self, stem: str) -> int:
        return sum(1 for key in self.made if key[1] == stem)

    def _refuse(self, op: ad.Request, primal: func.FuncOp, wrt: tuple[int, ...]) -> None:
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


def _in_tensors(forward: func.FuncOp, backward: func.FuncOp, results: int) -> tuple[Attribute, ...]:
    """Numbers (trips, sizes) among what is saved become tensors, as public functions hand them over; the types of all."""
    last = forward.body.block.last_op
    assert last is not None
    for k, value in list(enumerate(last.operands))[results:]:
        if isinstance(value.type, TensorType):
            continue
        boxed = tensor.FromElementsOp.create(operands=[value], result_types=[TensorType(value.type, [])], location=last.location)
        forward.body.block.insert_op_before(boxed, last)
        last.operands[k] = boxed.results[0]
        block = backward.body.block
        old = block.args[k - results]
        new = block.insert_arg(boxed.results[0].type, k - results)
        number = tensor.ExtractOp.create(operands=[new], result_types=[old.type], location=backward.location)
        new.name_hint, number.results[0].name_hint = old.name_hint, old.name_hint
        old.replace_all_uses_with(number.results[0])
        block.erase_arg(old)
        first = block.first_op
        assert first is not None
        block.insert_op_before(number, first)
    forward.update_function_type()
    backward.update_function_type()
    return tuple(v.type for v in list(last.operands)[results:])


def _moving(function: func.FuncOp) -> list[int]:
    """Positions of the results that have tangents and cotangents."""
    return [k for k, kind in enumerate(function.function_type.outputs.data) if is_differentiable(kind)]


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
    """IEEE products in the generated functions, for those who want the NaN.

    At level 2 a strong product is a selection. Where the program itself holds such selections they all stay: its own are no products.
    """
    given = [function for function in module.body.block.ops if id(function) in before]
    own = any(isinstance(op, arith.SelectOp) and is_strong_product(op) for function in given for op in function.walk())
    for function in module.body.block.ops:
        if id(function) in before:
            continue
        for op in list(function.walk()):
            if isinstance(op, arith.SelectOp) and not own and is_strong_product(op):
                op.result.replace_all_uses_with(op.rhs)
                op.detach()
                op.erase()
                continue
            if isinstance(op, nd.MulStrongOp):
                new = nd.MulOp.create(operands=list(op.operands), result_types=[op.result.type], location=op.location)
                assert op.parent is not None
                op.parent.insert_op_before(new, op)
                op.result.replace_all_uses_with(new.results[0])
                op.detach()
                op.erase()


__all__ = ["Differentiate", "Resolver"]
