"""The structure of IR, as passes share it: the block of a value, the body of a function, which functions are public; moving ops."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from gradir.ir.passes import error_at


def block_of(value: SSAValue) -> Block | None:
    """The block in which `value` is defined, None for a result of an op that stands in no block."""
    owner = value.owner
    return owner if isinstance(owner, Block) else owner.parent


def is_inside(value: SSAValue, op: Operation) -> bool:
    """Whether `value` is defined in a region of `op`, at any depth."""
    block = block_of(value)
    while block is not None:
        parent = block.parent_op()
        if parent is op:
            return True
        block = parent.parent if parent is not None else None
    return False


def move_before(source: Block, place: Operation) -> None:
    """Move the ops of `source`, in their order, in front of `place`."""
    block = place.parent
    assert block is not None, "ops stand in blocks"
    for op in list(source.ops):
        op.detach()
        block.insert_op_before(op, place)


def move_to_start(source: Block, block: Block) -> None:
    """Move the ops of `source`, in their order, to the beginning of `block`."""
    if block.first_op is not None:
        move_before(source, block.first_op)
    else:
        move_to_end(source, block)


def move_to_end(source: Block, block: Block) -> None:
    """Move the ops of `source`, in their order, to the end of `block`."""
    for op in list(source.ops):
        op.detach()
        block.add_op(op)


def is_public(function: FuncOp) -> bool:
    """Whether callers outside the module see `function`."""
    return function.sym_visibility is None or function.sym_visibility.data == "public"


def public_functions(module: ModuleOp) -> list[FuncOp]:
    """The functions with a body that callers outside the module see."""
    return [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks and is_public(op)]


def function_named(module: ModuleOp, name: str) -> FuncOp:
    """The function `@name`, which stands in `module`."""
    return next(op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data == name)


def single_block(function: FuncOp) -> Block:
    """The body of a function above the target level: one block, control flow in regions. Raises GradirError GR063."""
    blocks = function.body.blocks
    if len(blocks) == 1:
        return function.body.block
    raise error_at(
        function,
        "has several blocks" if blocks else "has no body",
        part="graph",
        code="GR063",
        expected="a body of one block; branches and loops are `scf` ops",
        found=f"{len(blocks)} blocks",
        hint="write the control flow with scf.if, scf.for or scf.while" if blocks else "define the function in this module",
    )
