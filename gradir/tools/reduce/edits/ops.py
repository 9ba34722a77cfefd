"""Removing ops: without uses at once, else their results become operands, constants or arguments of the function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from gradir.dialects.upstream.func import FuncOp
from gradir.tools.reduce.edits.edit import Choose, constant, remove, replace_results
from gradir.tools.reduce.edits.functions import references
from gradir.tools.reduce.measure import CONSTANTS


def drop_ops(module: ModuleOp, choose: Choose) -> None:
    """Ops whose results nobody uses, effects included, users first."""
    for op in _candidates(module):
        if not any(result.uses for result in op.results) and choose():
            remove(op)


def ops_to_operands(module: ModuleOp, choose: Choose) -> None:
    """Each result becomes an operand of the same type; for a loop these are the initial values."""
    _replace(module, choose, _operands_for)


def ops_to_constants(module: ModuleOp, choose: Choose) -> None:
    """Each result becomes a constant 0."""

    def zeros(op: Operation) -> Sequence[SSAValue] | None:
        if op.name in CONSTANTS:
            return None
        made = [constant(result.type, 0, op) for result in op.results]
        found = [new for new in made if new is not None]
        if len(found) < len(made):
            return None
        assert op.parent is not None
        op.parent.insert_ops_before(found, op)
        return [new.results[0] for new in found]

    _replace(module, choose, zeros)


def ops_to_arguments(module: ModuleOp, choose: Choose) -> None:
    """Each result becomes an argument of the function: an equal one that is there, or a new one where nobody calls the function."""
    called = references(module)

    def arguments(op: Operation) -> Sequence[SSAValue] | None:
        function = _function_around(op)
        if function is None or op.name in CONSTANTS:
            return None
        args, free = function.body.blocks[0].args, function.sym_name.data not in called
        known = [next((a for a in args if a.type == result.type), None) for result in op.results]
        if any(value is None for value in known) and not free:
            return None
        values: list[SSAValue] = []
        for result, value in zip(op.results, known):
            values.append(value if value is not None else _new_argument(function, result))
        return values

    _replace(module, choose, arguments)


def _new_argument(function: FuncOp, like: SSAValue) -> SSAValue:
    block = function.body.blocks[0]
    argument = block.insert_arg(like.type, len(block.args))
    argument.name_hint = like.name_hint
    kind = function.function_type
    function.properties["function_type"] = FunctionType.from_lists([*kind.inputs.data, like.type], list(kind.outputs.data))
    function.properties.pop("arg_attrs", None)
    return argument


def _candidates(module: ModuleOp) -> Iterator[Operation]:
    """Ops inside of functions that may go, last ones first, so that users go before what they use."""
    for op in reversed(list(module.walk())):
        if op is module or op.parent is None or isinstance(op, FuncOp) or op.has_trait(IsTerminator):
            continue
        if op.parent_op() is not module or op.results:
            yield op


def _replace(module: ModuleOp, choose: Choose, values_for: Callable[[Operation], Sequence[SSAValue] | None]) -> None:
    for op in _candidates(module):
        if not any(result.uses for result in op.results) or op.name in CONSTANTS:
            continue
        if choose():
            values = values_for(op)
            if values is not None:
                replace_results(op, values)


def _operands_for(op: Operation) -> Sequence[SSAValue] | None:
    """For each result an operand of its type, different ones as long as there are any."""
    left = list(op.operands)
    values: list[SSAValue] = []
    for result in op.results:
        value = next((v for v in left if v.type == result.type), None)
        if value is None:
            value = next((v for v in op.operands if v.type == result.type), None)
        elif len(left) > 1:
            left.remove(value)
        if value is None:
            return None
        values.append(value)
    return values


def _function_around(op: Operation) -> FuncOp | None:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        parent = parent.parent_op()
    return parent
