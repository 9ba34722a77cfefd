"""A plugin: one op with every facet, added from outside of the package through the tables that Gradir itself uses.

    gradir-opt --load gradir_softsign.py softsign.mlir -p 'act-raise,differentiate,to-structured{target=cpu},to-buffers,to-loops'

Installed with pip (see pyproject.toml) it needs no --load: the entry point in the group `gradir.plugins` imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from gradir.autodiff.registry import Contribution, vjp
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import nd, registry
from gradir.dialects.nd.base import TENSOR, NdOp, Sample, new
from gradir.dialects.nd.checks import check_element, check_same_types
from gradir.dialects.nd.samples.case import SPECIAL, same
from gradir.dialects.upstream import arith, math
from gradir.driver.passes import register_pass
from gradir.ir.passes import Pass, PassContext
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.scalars import Scalars
from gradir.lowering.convert_nd_to_linalg.views import View
from gradir.lowering.folds.table import FOLD_MODULES, Folder, Rule
from gradir.reference import evaluates

# -- the op: text, verifier, meaning, samples


@irdl_op_definition
class SoftsignOp(NdOp):
    """`result = x / (1 + |x|)`, elementwise on floats; softsign(+-inf) = NaN. ONNX: Softsign."""

    name = "act.softsign"

    operand = operand_def(TENSOR)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, "float")
        check_same_types(self, ("operand", "result"), (self.operand, self.result))

    @classmethod
    def make(cls, operand: SSAValue) -> Self:
        """The op on this operand; the result has its type."""
        return new(cls, (operand,), operand.type)

    def evaluate(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The definition, in f32 for f16 and bf16."""
        wide = x.astype(np.promote_types(x.dtype, np.float32)) if x.dtype.itemsize < 4 else x
        return (wide / (1 + np.abs(wide))).astype(x.dtype)

    @classmethod
    def samples(cls) -> tuple[Sample, ...]:
        """Values where every facet is checked; the first one numerically differentiated."""
        return (
            same("f64", "act.softsign %0", [np.linspace(-2.0, 2.5, 6).reshape(2, 3)], (0,)),
            same("f32 special", "act.softsign %0", [np.array(SPECIAL, np.float32)]),
            same("f32 empty", "act.softsign %0", [np.zeros((0, 2), np.float32)]),
        )


Act = Dialect("act", [SoftsignOp])
registry.register_loaded(Act, __name__)


@evaluates(SoftsignOp)
def run_softsign(_machine: Any, op: SoftsignOp, x: Any) -> Any:
    """What the reference evaluator does: the op's own definition."""
    with np.errstate(all="ignore"):
        return op.evaluate(x)


# -- derivative


@vjp(SoftsignOp)
def softsign_vjp(t: TensorBuilder, op: SoftsignOp, ct: SSAValue) -> tuple[Contribution, ...]:
    """d softsign(x) = dx / (1 + |x|)**2"""
    one_plus = t.add(t.full_like(1.0, op.operand), t.unary(nd.AbsOp, op.operand))
    return (t.mul_strong(ct, t.div(t.full_like(1.0, ct), t.mul(one_plus, one_plus))),)


# -- lowering: the scalar body of one loop nest


@lowers(SoftsignOp)
def lower_softsign(lowering: Lowering, op: SoftsignOp) -> View:
    """`x / (1 + |x|)` for each element."""

    def body(s: Scalars, x: SSAValue) -> SSAValue:
        return s.f(arith.DivfOp, x, s.f(arith.AddfOp, s.like(1.0, x), s.f(math.AbsFOp, x)))

    return lowering.elementwise(op, [lowering.view(op.operand)], body)


# -- an identity for `canonicalize`


def fold_softsign(op: SoftsignOp, folder: Folder) -> Sequence[SSAValue] | None:
    """softsign(-x) -> -softsign(x): the function is odd."""
    inner = op.operand.owner
    if not isinstance(inner, nd.NegOp):
        return None
    positive = folder.new(SoftsignOp, (inner.operand,), (op.result.type,))
    return folder.new(nd.NegOp, positive.results, (op.result.type,)).results


FOLDS: dict[type[Operation], Rule] = {SoftsignOp: fold_softsign}
FOLD_MODULES["act"] = [__name__]


# -- a pass


@dataclass(frozen=True)
class ActRaise(Pass):
    """Before and after: level 1. `x / (1 + |x|)` written out becomes one op.

    ```mlir
    %a = nd.abs %x : tensor<4xf32>
    %b = nd.add %one, %a : tensor<4xf32>
    %y = nd.div %x, %b : tensor<4xf32>     // becomes %y = act.softsign %x : tensor<4xf32>
    ```
    """

    NAME: ClassVar[str] = "act-raise"
    ANCHOR: ClassVar[str | None] = "func.func"

    def apply(self, op: Operation, context: PassContext) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, nd.DivOp) and _is_one_plus_abs(inner.rhs, inner.lhs):
                raised = SoftsignOp.make(inner.lhs)
                raised.location = inner.location
                raised.result.name_hint = inner.result.name_hint
                block = inner.parent
                assert block is not None
                block.insert_op_before(raised, inner)
                inner.result.replace_all_uses_with(raised.result)
                inner.detach()
                inner.erase()


def _is_one_plus_abs(value: SSAValue, x: SSAValue) -> bool:
    """Whether `value` is 1 + |x|, in either order."""
    add = value.owner
    if not isinstance(add, nd.AddOp):
        return False
    return any(_is_one(a) and isinstance(b.owner, nd.AbsOp) and b.owner.operand is x for a, b in ((add.lhs, add.rhs), (add.rhs, add.lhs)))


def _is_one(value: SSAValue) -> bool:
    constant: Attribute | None = value.owner.properties["value"] if isinstance(value.owner, nd.ConstantOp) else None
    return isinstance(constant, FloatAttr) and constant.value.data == 1.0


register_pass("act-raise", ActRaise, "write x / (1 + |x|) as act.softsign")
