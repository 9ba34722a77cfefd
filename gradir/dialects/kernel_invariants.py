"""What every outlined kernel keeps at every level; the verifier checks it wherever a function carries `gradir.kernel`.

At level 2 a kernel is in destination-passing style: its last arguments are the destinations of its results. From level 3 on it
has no results and no tensors, and does not write what its operand attributes call read-only: the emitter derives `noalias`
and constness from those attributes alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, TensorType
from xdsl.ir import Block, Operation, SSAValue

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, Schedule
from gradir.dialects.upstream.func import FuncOp
from gradir.ir.verifier import Report, register_invariant

ACCESS = "gradir.access"

_VIEWS = frozenset(
    ["memref.subview", "memref.cast", "memref.view", "memref.reinterpret_cast", "memref.collapse_shape", "memref.expand_shape"]
)
_WRITES = {
    "memref.store": 1,
    "memref.copy": 1,
    "vector.store": 1,
    "vector.transfer_write": 1,
    "vector.maskedstore": 0,
    "vector.compressstore": 0,
    "vector.scatter": 0,
}
"""Op -> position of the operand that it writes; ops of linalg write their outputs."""

_OUTSIDE = frozenset({"nd", "ad", "func", "gpu"})
"""Dialects whose ops have no place in a kernel's body (`func.return` apart)."""


@register_invariant(KERNEL_ATTRIBUTE)
def check_kernel(function: Operation, report: Report) -> None:
    """Marked as one on a function; private, one block, no calls, and the form of its level."""
    mark = function.attributes[KERNEL_ATTRIBUTE]
    if not isinstance(function, FuncOp):
        report(function, f"carries {KERNEL_ATTRIBUTE} = {mark}, which belongs on a func.func")
        return
    if not isinstance(mark, Schedule):
        report(function, f"must have a #kernel attribute as {KERNEL_ATTRIBUTE}, found {mark}")
    if function.sym_visibility is None or function.sym_visibility.data != "private":
        report(function, "is a kernel and must be private")
    entry = function.body.first_block
    if entry is None:
        return
    if entry.next_block is not None:
        report(function, "is a kernel and must have one block")
        return
    for op in function.walk():
        if op.name.partition(".")[0] in _OUTSIDE and op is not function and op.name != "func.return":
            report(op, f"has no place in a kernel: {KERNEL_ATTRIBUTE} is on @{function.sym_name.data}")
    if _has_tensors(entry):
        _check_destinations(function, report)
    else:
        _check_buffers(function, entry, report)


def _check_destinations(function: FuncOp, report: Report) -> None:
    inputs, results = tuple(function.function_type.inputs), tuple(function.function_type.outputs)
    destinations = inputs[len(inputs) - len(results) :]
    if destinations != results:
        expected, found = _types(results), _types(destinations)
        report(function, f"is a kernel: its last arguments must be the destinations of its results, expected {expected}, found {found}")


def _check_buffers(function: FuncOp, entry: Block, report: Report) -> None:
    if function.function_type.outputs.data:
        report(function, f"is a kernel on buffers and must have no results, found {_types(function.function_type.outputs.data)}")
    read_only = {arg for arg, access in zip(entry.args, _access(function, len(entry.args))) if access == "read"}
    for op in function.walk():
        tensors = [value.type for value in (*op.operands, *op.results) if isinstance(value.type, TensorType)]
        if tensors:
            report(op, f"is on tensors in a kernel on buffers: {tensors[0]}")
        for value in _written(op):
            if (root := _root(value)) in read_only:
                report(op, f'writes argument #{entry.args.index(root)} of its kernel, which is marked {ACCESS} = "read"')


def _has_tensors(entry: Block) -> bool:
    return any(isinstance(arg.type, TensorType) for arg in entry.args)


def _access(function: FuncOp, count: int) -> Sequence[str]:
    """The access mark of each argument; empty where there is none."""
    attributes = function.arg_attrs
    if not isinstance(attributes, ArrayAttr):
        return [""] * count
    return [_word(entry) for entry in attributes]


def _word(entry: DictionaryAttr) -> str:
    word = entry.data.get(ACCESS)
    return word.data if isinstance(word, StringAttr) else ""


def _written(op: Operation) -> Iterator[SSAValue]:
    position = _WRITES.get(op.name)
    if position is not None:
        yield op.operands[position]
    elif op.name.startswith("linalg."):
        yield from getattr(op, "outputs", ())


def _root(value: SSAValue) -> SSAValue:
    """The buffer that `value` is a view of."""
    while isinstance(value.owner, Operation) and value.owner.name in _VIEWS:
        value = value.owner.operands[0]
    return value


def _types(types: Sequence[object]) -> str:
    return "(" + ", ".join(map(str, types)) + ")"
