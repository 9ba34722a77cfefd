"""Functions: unused ones go, calls become bodies, results and arguments are dropped with their counterparts at every call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.dialects.upstream.func import CallOp, FuncOp, ReturnOp
from gradir.lowering.inline import inline_call
from gradir.tools.reduce.edits.edit import Choose, constant, remove

T = TypeVar("T")


def drop_functions(module: ModuleOp, choose: Choose) -> None:
    """Functions and globals that no symbol reference names."""
    used = references(module)
    for op in reversed(list(module.body.block.ops)):
        name = op.properties.get("sym_name")
        if isinstance(name, StringAttr) and name.data not in used and choose():
            remove(op)


def inline_calls(module: ModuleOp, choose: Choose) -> None:
    """Each call by the body of its callee; a callee that nobody calls any more goes."""
    for call in [op for op in module.walk() if isinstance(op, CallOp)]:
        callee = _functions(module).get(call.callee.string_value())
        if callee is None or len(callee.body.blocks) != 1 or call in list(callee.walk()):
            continue
        if choose():
            inline_call(call, callee)
            if callee.sym_name.data not in references(module):
                remove(callee)


def drop_results(module: ModuleOp, choose: Choose) -> None:
    """One result of a function, at its return and at every call."""
    for function, calls in _with_calls(module):
        for k in reversed(range(len(function.function_type.outputs))):
            if not choose():
                continue
            for block in function.body.blocks:
                if isinstance(last := block.last_op, ReturnOp):
                    last.operands = _without(last.operands, k)
            calls[:] = [_drop_call_result(call, k) for call in calls]
            kind = function.function_type
            function.properties["function_type"] = FunctionType.from_lists(list(kind.inputs.data), _without(kind.outputs.data, k))
            _drop_attribute(function, "res_attrs", k)


def drop_arguments(module: ModuleOp, choose: Choose) -> None:
    """One argument of a function that its body does not use, with the operand of every call."""
    for function, calls in _with_calls(module):
        for k in reversed(range(len(function.function_type.inputs))):
            block = function.body.blocks[0] if function.body.blocks else None
            if (block is not None and block.args[k].uses) or not choose():
                continue
            _drop_argument(function, calls, k)


def arguments_to_constants(module: ModuleOp, choose: Choose) -> None:
    """The uses of an argument become a constant 0; then the argument goes."""
    for function, calls in _with_calls(module):
        for k in reversed(range(len(function.function_type.inputs))):
            if not function.body.blocks or not choose():
                continue
            block = function.body.blocks[0]
            if block.args[k].uses:
                value = constant(block.args[k].type, 0, function)
                if value is None or block.first_op is None:
                    continue
                block.insert_op_before(value, block.first_op)
                block.args[k].replace_all_uses_with(value.results[0])
            _drop_argument(function, calls, k)


def references(module: ModuleOp) -> set[str]:
    """The symbols that ops of the module name."""
    return {name for op in module.walk() for value in (*op.properties.values(), *op.attributes.values()) for name in _symbols(value)}


def _symbols(value: Attribute) -> Iterator[str]:
    if isinstance(value, SymbolRefAttr):
        yield value.root_reference.data
    elif isinstance(value, ArrayAttr):
        for inner in value.data:
            yield from _symbols(inner)


def _functions(module: ModuleOp) -> dict[str, FuncOp]:
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}


def _with_calls(module: ModuleOp) -> Iterator[tuple[FuncOp, list[CallOp]]]:
    """Functions that only calls name: a derivative request depends on the order of arguments and results."""
    calls: dict[str, list[CallOp]] = {}
    others: set[str] = set()
    for op in module.walk():
        if isinstance(op, CallOp):
            calls.setdefault(op.callee.string_value(), []).append(op)
        else:
            others.update(name for value in op.properties.values() for name in _symbols(value))
    for name, function in _functions(module).items():
        if name not in others:
            yield function, calls.get(name, [])


def _drop_argument(function: FuncOp, calls: Sequence[CallOp], k: int) -> None:
    """Argument `k`, which nothing uses, from the function, its type, its attributes and every call."""
    for block in list(function.body.blocks)[:1]:
        block.erase_arg(block.args[k])
    for call in calls:
        call.operands = _without(call.operands, k)
    kind = function.function_type
    function.properties["function_type"] = FunctionType.from_lists(_without(kind.inputs.data, k), list(kind.outputs.data))
    _drop_attribute(function, "arg_attrs", k)


def _drop_call_result(call: CallOp, k: int) -> CallOp:
    kinds: list[Attribute] = _without([result.type for result in call.results], k)
    new = CallOp.create(
        operands=list(call.operands),
        result_types=kinds,
        properties=dict(call.properties),
        attributes=dict(call.attributes),
        location=call.location,
    )
    block = call.parent
    assert block is not None
    block.insert_op_before(new, call)
    values: list[SSAValue] = list(new.results)
    values.insert(k, _stand_in(call, k))
    for old, value in zip(call.results, values):
        old.replace_all_uses_with(value)
    remove(call)
    return new


def _stand_in(call: CallOp, k: int) -> SSAValue:
    """What uses of the dropped result read from now on."""
    result = call.results[k]
    if not result.uses:
        return result
    value = constant(result.type, 0, call)
    if value is None:
        raise ValueError("no constant of this type")
    assert call.parent is not None
    call.parent.insert_op_before(value, call)
    return value.results[0]


def _without(values: Sequence[T], k: int) -> list[T]:
    return [value for i, value in enumerate(values) if i != k]


def _drop_attribute(function: Operation, name: str, k: int) -> None:
    value = function.properties.get(name)
    if isinstance(value, ArrayAttr) and k < len(value.data):
        function.properties[name] = ArrayAttr(_without(list(value.data), k))
