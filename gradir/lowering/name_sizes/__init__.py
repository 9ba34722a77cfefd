"""`name-sizes`: sizes without a name get one, and the sizes of results follow from them through the whole module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from gradir.dialects.types import shape_of
from gradir.dialects.upstream.func import FuncOp
from gradir.ir.passes import Pass, PassContext, error_at
from gradir.lowering.name_sizes.rebuilding import Module


@dataclass(frozen=True)
class NameSizes(Pass):
    """Before: level 1, types may hold `?` without a name. After: level 1 where every size that can be told has a name.

    A size of an argument gets a name of its own; arguments that the function's own block uses as one shape get one name, which a call
    checks. The sizes of results are computed (`2*x_0+1`), a size that an operand of an op gives is bound. Where two sizes have to be
    equal elsewhere, and are not the same text, the program asserts it (`nd.assert`). A module that names its sizes is left as it is.

    ```mlir
    func.func @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
      %0 = nd.concatenate %x, %x dim 0 : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
    // becomes
    func.func @f(%x: tensor<?x4xf32, ["x_0", ""]>) -> tensor<?x4xf32, ["2*x_0", ""]> {
      %0 = nd.concatenate %x, %x dim 0 : tensor<?x4xf32, ["x_0", ""]>, ... -> tensor<?x4xf32, ["2*x_0", ""]>
    ```
    """

    NAME: ClassVar[str] = "name-sizes"

    def apply(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, ModuleOp)
        functions = [f for f in op.body.block.ops if isinstance(f, FuncOp) and f.body.blocks]
        if any(_has_anonymous_size(f) for f in functions):
            Module(op, functions).run()


def _has_anonymous_size(function: FuncOp) -> bool:
    types: list[Attribute] = [*function.function_type.inputs, *function.function_type.outputs]
    try:
        if any(map(_is_anonymous, types)):
            return True
        return any(_is_anonymous(result.type) for op in function.walk() for result in op.results)
    except VerifyException as error:  # the text of a size in a type that no op looked at
        raise error_at(function, str(error), part="graph", code="GR051") from None


def _is_anonymous(kind: Attribute) -> bool:
    return isinstance(kind, TensorType) and not kind.has_static_shape() and None in shape_of(cast("TensorType[Any]", kind))
