"""`bufferize`: tensors become memrefs (level 2 to level 3).

Read in this order: `contents` (what tensors hold, who reads them), `lifetimes`, `ownership` and `forwarding` (which of them may share
memory), `plan` and `loops` (what is asked of these), `memory`, `emission`, `emit_control` and `sizes` (writing the result), `kernels`
(variants and operand attributes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, MemRefType, ModuleOp, TensorType, i64
from xdsl.ir import Attribute, Operation

from gradir.dialects.donation import donated_arguments
from gradir.dialects.kernel import KERNEL_ATTRIBUTE
from gradir.dialects.upstream import func
from gradir.ir.builder import new_function
from gradir.ir.passes import Pass, PassContext, error_at
from gradir.lowering.bufferize.contents import Contents
from gradir.lowering.bufferize.emit_control import FunctionEmitter
from gradir.lowering.bufferize.kernels import ACCESS, ALIAS, emit_kernel, read_kernel
from gradir.lowering.bufferize.layouts import memref_of
from gradir.lowering.bufferize.memory import CallSite, Module
from gradir.lowering.bufferize.plan import Plan
from gradir.lowering.bufferize.views import KernelFacts

INPUTS = "gradir.inputs"
RESULTS = "gradir.results"

__all__ = ["ACCESS", "ALIAS", "INPUTS", "RESULTS", "Bufferize"]


@dataclass(frozen=True)
class Bufferize(Pass):
    """Before: level 2, kernels outlined (private functions with `gradir.kernel`, in destination-passing style). After: level 3, no tensors.

    Arguments keep their order; each result becomes an argument behind them. Kernels lose their results: they write their last operands.

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %e = tensor.empty() : tensor<4xf32>
      %y = call @exp(%x, %e) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return %y : tensor<4xf32>
    }
    // becomes
    func.func @f(%x: memref<4xf32>, %out: memref<4xf32>) attributes {gradir.inputs = 1 : i64, gradir.results = 1 : i64} {
      call @exp(%x, %out) : (memref<4xf32>, memref<4xf32>) -> ()
      return
    }
    ```

    `facts["bufferize"]` maps functions to the types of the copies (`memref.copy`) that remain in them.
    """

    NAME: ClassVar[str] = "bufferize"

    def apply(self, op: Operation, context: PassContext) -> None:
        module = cast("ModuleOp", op)
        functions = [
            f for f in module.body.block.ops if isinstance(f, func.FuncOp) and (KERNEL_ATTRIBUTE in f.attributes or _has_tensors(f))
        ]
        names = {cast("Attribute", f.properties.get("sym_name")) for f in module.body.block.ops}
        state = Module({name.data for name in names if hasattr(name, "data")})  # pyright: ignore[reportAttributeAccessIssue]  StringAttr
        kernels = {f.sym_name.data: read_kernel(f) for f in functions if KERNEL_ATTRIBUTE in f.attributes}
        facts = {name: kernel.facts for name, kernel in kernels.items()}
        made: dict[func.FuncOp, list[func.FuncOp]] = {}
        for function in functions:
            if KERNEL_ATTRIBUTE not in function.attributes:
                made[function] = [_entry(function, facts, state)]
        sites: dict[str, list[CallSite]] = {}
        for site in state.calls:
            sites.setdefault(site.kernel, []).append(site)
        for name, kernel in kernels.items():
            made[kernel.function] = emit_kernel(kernel, sites.get(name, ()), state)
        block = module.body.block
        for old, new in made.items():
            for function in new:
                block.insert_op_before(function, old)
        for old in functions:
            old.detach()
            old.drop_all_references()
            old.erase(safe_erase=False)
        first = block.first_op
        for constant in state.globals.values():
            if first is None:
                block.add_op(constant)
            else:
                block.insert_op_before(constant, first)
        context.facts[self.NAME] = state.copies


def _has_tensors(function: func.FuncOp) -> bool:
    signature = function.function_type
    if any(isinstance(t, TensorType) for t in (*signature.inputs.data, *signature.outputs.data)):
        return True
    return any(isinstance(r.type, TensorType) for op in function.body.walk() for r in op.results)


def _entry(function: func.FuncOp, kernels: dict[str, KernelFacts], state: Module) -> func.FuncOp:
    """The buffer form of a function that is called from outside."""
    signature = function.function_type
    for type_ in (*signature.inputs.data, *signature.outputs.data):
        if isinstance(type_, MemRefType):
            raise error_at(function, "mixes tensors and memrefs", part="graph", code="GR060", expected="tensors alone", found=str(type_))
    for type_ in signature.outputs.data:
        if not isinstance(type_, TensorType):
            raise error_at(
                function,
                "returns a scalar",
                part="graph",
                code="GR060",
                expected="tensors as results",
                found=str(type_),
                hint="return a tensor of rank 0 (`tensor.from_elements`)",
            )
    plan = Plan(Contents(function, kernels, donated=donated_arguments(function)))
    emitter = FunctionEmitter(plan, _entry_types(function), state)
    block = emitter.run()
    name = function.sym_name.data
    if emitter.copied:
        state.copies[name] = emitter.copied
    inputs, outputs = len(signature.inputs.data), len(signature.outputs.data)
    attributes = {**function.attributes, **plan.donation.attributes(), INPUTS: IntegerAttr(inputs, i64), RESULTS: IntegerAttr(outputs, i64)}
    private = function.sym_visibility is not None and function.sym_visibility.data == "private"
    new = new_function(name, block, (), private=private, attributes=attributes, loc=function.location)
    if function.arg_attrs is not None or function.res_attrs is not None:
        rows = [_rows(function.arg_attrs, inputs), _rows(function.res_attrs, outputs)]
        new.properties["arg_attrs"] = ArrayAttr([row for group in rows for row in group])
    return new


def _entry_types(function: func.FuncOp) -> list[Attribute]:
    signature = function.function_type
    return [memref_of(t) for t in (*signature.inputs.data, *signature.outputs.data)]


def _rows(attributes: ArrayAttr[DictionaryAttr] | None, count: int) -> list[DictionaryAttr]:
    return list(attributes.data) if attributes is not None else [DictionaryAttr({})] * count
