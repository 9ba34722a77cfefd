"""Names of sizes that belong to one function, when its body moves into another: `nd.bind %n as "n"` there may not meet an `n` here.

A name in the types of arguments or results is the same size on both sides of a call, since the types are; one that the body binds for
itself is its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute, Operation

from gradir import size_algebra
from gradir.dialects.nd.creation import BindOp, SymbolOp
from gradir.dialects.types import Dim, element_of, shape_of, tensor
from gradir.dialects.upstream.func import CallOp, FuncOp


def fresh_names(call: CallOp, callee: FuncOp) -> dict[str, Dim]:
    """A new name for each size that `callee` binds for itself under a name that the function around `call` uses."""
    own = {_name(op) for op in callee.walk() if isinstance(op, BindOp)}
    if not own:
        return {}
    kind = callee.function_type
    own -= {name for type_ in (*kind.inputs.data, *kind.outputs.data) for name in _names(type_)}
    around: Operation | None = call
    while around is not None and not isinstance(around, FuncOp):
        around = around.parent_op()
    taken = {name for op in around.walk() for name in _names_of(op)} if around is not None else set[str]()
    fresh: dict[str, Dim] = {}
    for name in sorted(own & taken):
        count = 1
        while (new := f"{name}_{count}") in taken:
            count += 1
        taken.add(new)
        fresh[name] = new
    return fresh


def rename_sizes(op: Operation, names: Mapping[str, Dim]) -> None:
    """Give sizes in `op` and all in it other names, in place."""
    for inner in op.walk():
        if isinstance(inner, BindOp | SymbolOp):
            inner.properties["sym"] = StringAttr(str(size_algebra.rename(_name(inner), names)))
        for result in inner.results:
            result._type = _renamed(result.type, names)
        for region in inner.regions:
            for block in region.blocks:
                for argument in block.args:
                    argument._type = _renamed(argument.type, names)


def _renamed(kind: Attribute, names: Mapping[str, Dim]) -> Attribute:
    if not isinstance(kind, TensorType) or not any(isinstance(size, str) for size in shape_of(kind)):
        return kind
    return tensor(element_of(kind), [size_algebra.rename(size, names) for size in shape_of(kind)])


def _names(kind: Attribute) -> Iterator[str]:
    if isinstance(kind, TensorType):
        for size in shape_of(kind):
            yield from size_algebra.names_in(size)


def _names_of(op: Operation) -> Iterator[str]:
    if isinstance(op, BindOp | SymbolOp):
        yield from size_algebra.names_in(_name(op))
    for result in op.results:
        yield from _names(result.type)
    for region in op.regions:
        for block in region.blocks:
            for argument in block.args:
                yield from _names(argument.type)


def _name(op: Operation) -> str:
    name = op.properties["sym"]
    assert isinstance(name, StringAttr)
    return name.data
