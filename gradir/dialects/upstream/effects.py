"""What an op does to memory: the traits, and a table for the upstream ops whose traits xDSL leaves out.

xDSL's linalg, vector, affine and scf terminators carry no memory-effect trait, so its own cse and dce never touch them.
`cse`, `dce`, inlining and reordering ask here. An op that is in no table and carries no trait may do anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Flag, auto

from xdsl.dialects.builtin import MemRefType, UnrankedMemRefType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator, MemoryEffect, MemoryEffectKind, RecursiveMemoryEffect


class Effects(Flag):
    """A set of effects; `NOTHING` is the empty set, `ANYTHING` an op of which nothing is known."""

    NOTHING = 0
    READ = auto()
    WRITE = auto()
    ALLOCATE = auto()
    FREE = auto()
    ORDER = auto()  # keeps its place among ops of this kind and is never removed: print, assert, callbacks
    ANYTHING = READ | WRITE | ALLOCATE | FREE | ORDER


_KINDS = {
    MemoryEffectKind.READ: Effects.READ,
    MemoryEffectKind.WRITE: Effects.WRITE,
    MemoryEffectKind.ALLOC: Effects.ALLOCATE,
    MemoryEffectKind.FREE: Effects.FREE,
}

_PURE = (
    "arith.extsi linalg.yield scf.yield scf.condition scf.reduce scf.reduce.return func.return tensor.yield tensor.dim "
    "tensor.empty affine.apply affine.min affine.yield vector.bitcast vector.reduction vector.create_mask vector.shuffle "
    "memref.get_global memref.view memref.subview memref.cast memref.dim memref.reinterpret_cast memref.collapse_shape "
    "memref.extract_aligned_pointer_as_index memref.expand_shape bufferization.to_buffer gpu.thread_id gpu.block_id "
    "gpu.block_dim gpu.grid_dim gpu.global_id gpu.lane_id gpu.subgroup_id gpu.num_subgroups gpu.subgroup_size "
)

_TABLE: dict[str, Effects] = {
    **dict.fromkeys(_PURE.split(), Effects.NOTHING),
    "vector.load": Effects.READ,
    "vector.maskedload": Effects.READ,
    "vector.store": Effects.WRITE,
    "vector.maskedstore": Effects.WRITE,
    "vector.print": Effects.ORDER,
    "memref.prefetch": Effects.READ,
    "affine.load": Effects.READ,
    "affine.vector_load": Effects.READ,
    "affine.store": Effects.WRITE,
    "affine.vector_store": Effects.WRITE,
    "bufferization.to_tensor": Effects.READ,
    "bufferization.clone": Effects.READ | Effects.ALLOCATE,
    "bufferization.alloc_tensor": Effects.NOTHING,
    "cf.assert": Effects.ORDER,
    "nd.assert": Effects.ORDER,
    "nd.print": Effects.ORDER,
    "gpu.barrier": Effects.ORDER,
}


def _in_memory(values: Sequence[SSAValue]) -> bool:
    return any(isinstance(value.type, MemRefType | UnrankedMemRefType) for value in values)


def _structured(op: Operation) -> Effects:
    """linalg: tensors are values; of memrefs the inputs are read, the outputs read and written."""
    assert isinstance(op, LinalgStructuredOperation)
    found = Effects.READ if _in_memory(op.inputs) else Effects.NOTHING
    return found | (Effects.READ | Effects.WRITE if _in_memory(op.outputs) else Effects.NOTHING)


def _whole(op: Operation) -> Effects:
    """`linalg.fill`, `linalg.copy`: the output is overwritten."""
    found = Effects.READ if _in_memory(op.operands[:1]) else Effects.NOTHING
    return found | (Effects.WRITE if _in_memory(op.operands[1:]) else Effects.NOTHING)


def _read_if_memory(op: Operation) -> Effects:
    return Effects.READ if _in_memory(op.operands) else Effects.NOTHING


def _write_if_memory(op: Operation) -> Effects:
    return Effects.WRITE if _in_memory(op.operands) else Effects.NOTHING


def _call_by_name(op: Operation) -> Effects:
    return Effects.ORDER if "effects" in op.properties else Effects.NOTHING


_BY_OPERANDS: dict[str, Callable[[Operation], Effects]] = {
    "nd.custom_call": _call_by_name,
    "linalg.fill": _whole,
    "linalg.copy": _whole,
    "linalg.broadcast": _whole,
    "linalg.transpose": _whole,
    "vector.transfer_read": _read_if_memory,
    "vector.gather": _read_if_memory,
    "vector.transfer_write": _write_if_memory,
    "bufferization.materialize_in_destination": _write_if_memory,
}


def effects(op: Operation) -> Effects:
    """Everything that `op`, the ops in its regions included, may do to memory."""
    own = own_effects(op)
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                own |= effects(inner)
                if own == Effects.ANYTHING:
                    return own
    return own


def own_effects(op: Operation) -> Effects:
    """What `op` itself may do, the ops in its regions left out."""
    if (known := _TABLE.get(op.name)) is not None:
        return known
    if (rule := _BY_OPERANDS.get(op.name)) is not None:
        return rule(op)
    if isinstance(op, LinalgStructuredOperation):
        return _structured(op)
    traits = op.get_traits_of_type(MemoryEffect)
    if not traits:
        return Effects.ANYTHING
    found = Effects.NOTHING
    for trait in traits:
        if isinstance(trait, RecursiveMemoryEffect):
            continue  # `effects` looks into the regions itself
        instances = trait.get_effects(op)
        if instances is None:
            return Effects.ANYTHING
        for instance in instances:
            found |= _KINDS[instance.kind]
    return found


def is_pure(op: Operation) -> bool:
    """Whether `op` may be removed when unused, moved, and merged with an equal op: a value and nothing else."""
    return not op.has_trait(IsTerminator) and effects(op) == Effects.NOTHING
