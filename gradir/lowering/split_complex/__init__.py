"""Complex numbers become pairs of real ones, so that no level below knows them. One file of rules per family of ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.traits import IsTerminator

from gradir.dialects import nd
from gradir.dialects.upstream.func import CallOp, FuncOp, ReturnOp
from gradir.ir.builder import Builder
from gradir.ir.checks import is_entry
from gradir.ir.passes import Pass, PassContext, error_at
from gradir.ir.structure import move_before, move_to_start
from gradir.lowering.split_complex import (
    boundaries,
    complex as complex_parts,
    contraction,
    creation,
    elementwise,
    gather_scatter,
    mathematics,
    moves,
    reduction,
    sorting,
)
from gradir.lowering.split_complex.parts import Pair, Parts, Rule, is_complex_type

RULES: dict[type[Operation], Rule] = {
    **complex_parts.RULES,
    **elementwise.RULES,
    **mathematics.RULES,
    **moves.RULES,
    **gather_scatter.RULES,
    **reduction.RULES,
    **contraction.RULES,
    **creation.RULES,
    **sorting.RULES,
    nd.CustomCallOp: boundaries.custom_call,
    nd.OptimizationBarrierOp: boundaries.split_op,
}
"""What becomes of each op that has complex operands or results; control flow, calls and terminators pass two values for one."""

_SOURCES = (nd.ComplexOp, nd.ConstantOp, nd.ConvertOp, nd.IotaOp, nd.EmptyOp, nd.CustomCallOp)
"""Complex values begin at one of these or at an argument."""


@dataclass(frozen=True)
class SplitComplex(Pass):
    """Before: level 1, without composites. After: no value is complex. A module without complex numbers is left as it is.

    Every complex tensor is a pair of real ones, through control flow and calls too. A public function takes and returns pairs along a last
    axis, which is how arrays of complex numbers lie in memory.

    ```mlir
    func.func @f(%z: tensor<4xcomplex<f32>>) -> tensor<4xf32> {
      %r = nd.abs %z : tensor<4xcomplex<f32>>
      return %r : tensor<4xf32>
    }
    // becomes @f(%z: tensor<4x2xf32>): nd.slice and nd.reshape give %re and %im, and %r is hypot(%re, %im) in real ops
    ```
    """

    NAME: ClassVar[str] = "split-complex"

    def apply(self, op: Operation, context: PassContext) -> None:
        module = cast("ModuleOp", op)
        if not has_complex(module):
            return
        functions = [inner for inner in module.body.block.ops if isinstance(inner, FuncOp)]
        splitter = Splitter({function.sym_name.data: function for function in functions})
        for function in functions:
            splitter.function(function)
        for function in functions:
            function.properties["function_type"] = boundaries.function_type(function)
        splitter.erase()


def has_complex(module: ModuleOp) -> bool:
    """Whether any value is complex: looks at arguments and at the ops that make such values."""
    for op in module.walk():
        if isinstance(op, _SOURCES) and any(is_complex_type(result.type) for result in op.results):
            return True
        if isinstance(op, FuncOp):
            types = op.function_type
            if any(map(is_complex_type, (*types.inputs.data, *types.outputs.data))):
                return True
    return False


class Splitter:
    """One run: what each complex value became, and the ops and arguments that have been replaced."""

    def __init__(self, functions: dict[str, FuncOp]) -> None:
        self.functions = functions
        self.pairs: dict[SSAValue, Pair] = {}
        self.old_ops: list[Operation] = []
        self.old_arguments: list[SSAValue] = []

    def function(self, function: FuncOp) -> None:
        """The arguments, then the body."""
        block = function.body.first_block
        if block is None:
            return
        if is_entry(function):
            before = Block()
            self.old_arguments += boundaries.packed_arguments(Parts(Builder(before, function.location), self.pairs), block)
            move_to_start(before, block)
        else:
            self.old_arguments += boundaries.split_arguments(Parts(Builder(block), self.pairs), block)
        self.block(block)

    def block(self, block: Block) -> None:
        """Every op of a block whose arguments are split."""
        for op in list(block.ops):
            self.op(op)

    def op(self, op: Operation) -> None:
        """One op and what is inside of it."""
        touched = any(value in self.pairs for value in op.operands) or any(is_complex_type(result.type) for result in op.results)
        if not touched:
            self.regions(op)
            return
        made = Block()
        parts = Parts(Builder(made, op.location), self.pairs)
        for old, new in zip(op.results, self.results(parts, op), strict=True):
            self.replace(old, new)
        new_ops = list(made.ops)
        move_before(made, op)
        for part in new_ops:
            self.regions(part)
        self.old_ops.append(op)

    def results(self, parts: Parts, op: Operation) -> Sequence[SSAValue | Pair]:
        """What the results of `op` become; `parts` gets the ops."""
        rule = RULES.get(type(op))
        if rule is not None:
            return rule(parts, op)
        if isinstance(op, CallOp):
            return boundaries.call(parts, op, self.functions)
        if isinstance(op, ReturnOp) and isinstance(function := op.parent_op(), FuncOp) and is_entry(function):
            parts.builder.op(ReturnOp, boundaries.packed_operands(parts, op.operands), (), op.properties, (), op.attributes)
            return ()
        if op.regions or op.has_trait(IsTerminator):
            return boundaries.split_op(parts, op)
        raise error_at(
            op,
            "has no meaning on complex numbers",
            part="operator",
            code="OP021",
            expected="real operands, or an op that has a row in the rules of split-complex",
            found=", ".join(str(value.type) for value in op.operands),
            hint="compute with nd.real and nd.imag of the operands",
        )

    def regions(self, op: Operation) -> None:
        """The bodies of `op`, their arguments first."""
        for region in op.regions:
            for block in region.blocks:
                if any(is_complex_type(argument.type) for argument in block.args):
                    self.old_arguments += boundaries.split_arguments(Parts(Builder(block), self.pairs), block)
                self.block(block)

    def replace(self, old: SSAValue, new: SSAValue | Pair) -> None:
        """`new` stands for `old` from here on."""
        if isinstance(new, tuple):
            self.pairs[old] = new
            boundaries.name_parts(new, old.name_hint)
            return
        new.name_hint = new.name_hint or old.name_hint
        old.replace_all_uses_with(new)

    def erase(self) -> None:
        """Remove what has been replaced, users first."""
        for op in reversed(self.old_ops):
            op.detach()
            op.erase()
        for argument in self.old_arguments:
            assert isinstance(argument, BlockArgument)
            argument.block.erase_arg(argument)
