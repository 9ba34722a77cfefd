"""Functions: called again with other arguments, under a checkpoint, with rules of their own, differentiated or batched in the middle."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr, SymbolRefAttr, TensorType
from xdsl.ir import Attribute, Block, SSAValue

from gradir.dialects import ad, nd
from gradir.dialects.types import is_static, shape_of
from gradir.dialects.upstream import func
from gradir.ir.builder import new_function
from gradir.tools.fuzz.gradients.control import Grow
from gradir.tools.fuzz.gradients.scope import Function, Program, Scope, Shape, is_real, real


def call(scope: Scope, grow: Grow) -> None:
    """One of the functions that are there, or a new one, in one of the ways that a function can be used."""
    program = scope.program
    if not program.functions or (program.chance(0.5) and len(program.functions) < 5):
        _new(scope, grow)
    function = program.one_of(program.functions)
    for _ in range(1 + program.below(2)):
        arguments = [_argument(scope, kind) for kind in function.arguments]
        program.one_of(USES)(scope, function, arguments)


def _argument(scope: Scope, kind: Attribute) -> SSAValue:
    """A value; now and then one that is the same everywhere, so that the callee has another activity."""
    if isinstance(kind, TensorType) and kind == real(shape_of(kind)) and scope.program.chance(0.25):
        return scope.t.full(0.3, kind)
    return scope.of_type(kind)


def _new(scope: Scope, grow: Grow) -> None:
    program = scope.program
    kinds = [v.type for v in scope.some(3)]
    if isinstance(program.rows, str):  # the name of a size is known where an argument has it
        kinds.append(real((program.rows,)))
    block = Block(arg_types=kinds)
    inner = Scope(program, block, block.args, scope.depth + 1, None)
    grow(inner)
    first = inner.float_(())
    results = [first, *(inner.of_type(kind) for kind in (program.one_of(kinds),) if program.chance(0.6))]
    inner.builder.op(func.ReturnOp, results)
    outputs = [v.type for v in results]
    name = f"part{len(program.functions)}"
    program.module.body.block.add_op(new_function(name, block, outputs, private=True))
    program.functions.append(Function(name, kinds, outputs))


def _plain(scope: Scope, function: Function, arguments: list[SSAValue]) -> None:
    properties = {"callee": SymbolRefAttr(function.name)}
    scope.add(*scope.builder.op(func.CallOp, arguments, function.results, properties).results)


def _checkpoint(scope: Scope, function: Function, arguments: list[SSAValue]) -> None:
    _append(scope, ad.CheckpointOp.make([function.name], arguments, function.results))


def _gradient(scope: Scope, function: Function, arguments: list[SSAValue]) -> None:
    """The gradient of the first result, in the middle of the program."""
    wrt = [k for k, v in enumerate(arguments) if is_real(v)][: 1 + scope.program.below(2)]
    if _only_tensors(function) and wrt:
        kind = scope.program.one_of([ad.GradOp, ad.ValueAndGradOp])
        _append(scope, kind.make(function.name, arguments, wrt, function.results))
    else:
        _plain(scope, function, arguments)


def _tangent(scope: Scope, function: Function, arguments: list[SSAValue]) -> None:
    wrt = [k for k, v in enumerate(arguments) if is_real(v)][:1]
    if _only_tensors(function) and wrt:
        directions = [scope.float_(shape_of(arguments[k])) for k in wrt]
        _append(scope, ad.JvpOp.make(function.name, [*arguments, *directions], wrt, function.results))
    else:
        _plain(scope, function, arguments)


def _lanes(scope: Scope, function: Function, arguments: list[SSAValue]) -> None:
    """The function on two or three lanes, one of which is wanted in the end."""
    over = [k for k, v in enumerate(arguments) if isinstance(v.type, TensorType) and is_static(v.type)]
    if not (_only_tensors(function) and over and all(is_static(kind) for kind in function.results if isinstance(kind, TensorType))):
        _plain(scope, function, arguments)
        return
    over = over[: 1 + scope.program.below(len(over))]
    count = 2 + scope.program.below(2)
    wide = [_spread(scope, v, count) if k in over else v for k, v in enumerate(arguments)]
    op = ad.BatchOp.make(function.name, wide, over, function.results)
    _append(scope, op, keep=False)
    at = scope.index(count - 1)
    scope.add(*(scope.t.index_at(result, at) for result in op.results))


def _spread(scope: Scope, value: SSAValue, count: int) -> SSAValue:
    """Lanes: the value, and others of the same type."""
    rows = [value, *(scope.of_type(value.type) for _ in range(count - 1))]
    shape = shape_of(value)
    return scope.t.concatenate([scope.t.reshape(row, (1, *shape)) for row in rows], 0)


def _only_tensors(function: Function) -> bool:
    """Whether requests can name the function: they take and give tensors alone."""
    return all(isinstance(kind, TensorType) for kind in (*function.arguments, *function.results))


def _append(scope: Scope, op: ad.Request | ad.RuledCall, *, keep: bool = True) -> None:
    op.location = scope.builder.loc
    scope.block.add_op(op)
    if keep:
        scope.add(*op.results)


USES = (_plain, _plain, _plain, _checkpoint, _gradient, _tangent, _lanes)


def ruled(scope: Scope, grow: Grow) -> None:
    """A product with a rule of its own, right for any arguments: `custom_vjp` or `custom_jvp`."""
    program = scope.program
    x = scope.float_()
    y = scope.float_(shape_of(x))
    shape = shape_of(x)
    stem = "times_" + "_".join(str(n) for n in shape)
    kind = program.one_of([ad.CustomVjpOp, ad.CustomJvpOp])
    names = [stem, f"{stem}.forward", f"{stem}.backward"] if kind is ad.CustomVjpOp else [stem, f"{stem}.tangents"]
    there = {op.properties["sym_name"] for op in program.module.body.block.ops}
    for name in names:
        if StringAttr(name) not in there:
            _rule(program, name, shape)
    _append(scope, kind.make(names, [x, scope.bounded(y)], [x.type]))


def _rule(program: Program, name: str, shape: Shape) -> None:
    """`sin(x) y` and its rules."""
    kind = real(shape)
    word = name.rpartition(".")[2]
    count = {"forward": 2, "backward": 3, "tangents": 4}.get(word, 2)
    block = Block(arg_types=[kind] * count)
    scope = Scope(program, block, block.args, 0, None)
    x, y, *rest = block.args
    t = scope.t
    sine, cosine = t.unary(nd.SinOp, x), t.unary(nd.CosOp, x)
    if word == "forward":
        outputs = [t.mul(sine, y), x, y]
    elif word == "backward":
        outputs = [t.mul(t.mul(rest[0], cosine), y), t.mul(rest[0], sine)]
    elif word == "tangents":
        outputs = [t.mul(sine, y), t.add(t.mul(t.mul(rest[0], cosine), y), t.mul(rest[1], sine))]
    else:
        outputs = [t.mul(sine, y)]
    scope.builder.op(func.ReturnOp, outputs)
    program.module.body.block.add_op(new_function(name, block, [v.type for v in outputs], private=True))
