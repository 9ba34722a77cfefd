"""xDSL's objects with quicker forms of the few methods that every pass lives in: creation, walks, operands, hashes.

A third of a compilation was spent in these methods, most of it in what they need not do: three generators per op of a walk, a Python
frame for the hash of an object that hashes by identity, an iterator object per block. The forms here do what xDSL's do, in the same
order; `tests/ir/test_quick.py` compares the two. xDSL's version is pinned exactly, so there is one form to be equal to. Importing this
module replaces the methods; whatever builds IR imports it (`gradir.ir.builder`, `gradir.dialects.types`). Why: decision 28 in the manual.
"""

# pyright: reportPrivateUsage=false
# The fields that xDSL marks as private are what its methods, which these stand for, work on.

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

from typing_extensions import Protocol
from xdsl.dialects.builtin import UNKNOWN_LOC, DenseArrayBase
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue, Use
from xdsl.ir.core import BlockOps, IRWithName, IRWithUses, OpOperands, SSAValues, _IRNode
from xdsl.irdl import IRDLOperation, OptionalDef
from xdsl.irdl.operations import BaseAttrAccessor, BeforeVariadicSingleAccessor, VarIRConstruct

_NOTHING: Mapping[str, Attribute] = {}
_SLOW_WALKS: dict[type, Any] = {kind: kind.__dict__["walk"] for kind in (Operation, Block, Region)}
_POST_INIT = Operation.__post_init__
_OPERAND, _RESULT = VarIRConstruct.OPERAND, VarIRConstruct.RESULT


def _create(
    cls: type[Operation],
    *,
    operands: Sequence[SSAValue] = (),
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = _NOTHING,
    attributes: Mapping[str, Attribute] = _NOTHING,
    location: Any = None,
    successors: Sequence[Block] = (),
    regions: Sequence[Region] = (),
) -> Operation:
    """`Operation.create`: no setters, and defaults only for classes that have some."""
    op = cls.__new__(cls)
    values = op._operands = SSAValues(operands)
    uses: list[Use] = []
    for index, value in enumerate(values):
        first = value.first_use
        use = Use(op, index, None, first)
        if first is not None:
            first._prev_use = use
        value.first_use = use
        uses.append(use)
    op._operand_uses = tuple(uses)
    op.results = SSAValues([OpResult(kind, op, index) for index, kind in enumerate(result_types)])
    op.properties = dict(properties)
    op.attributes = dict(attributes)
    op.location = UNKNOWN_LOC if location is None else location
    if successors:
        op.successors = list(successors)
    if regions:
        for region in regions:
            op.add_region(region)
    if _has_defaults(cls) or Operation.__post_init__ is not _POST_INIT:  # xDSL's ImplicitBuilder puts its own there for a while
        op.__post_init__()
    return op


@cache
def _has_defaults(cls: type[Operation]) -> bool:
    """Does `__post_init__` do more than look at the name?"""
    if cls.__post_init__ is _POST_INIT:
        return False
    if not issubclass(cls, IRDLOperation) or cls.__post_init__ is not IRDLOperation.__post_init__:
        return True
    definition = cls.get_irdl_definition()
    declared = (*definition.properties.values(), *definition.attributes.values())
    return any(not isinstance(row, OptionalDef) and row.default_value is not None for row in declared)


def _nested(regions: Sequence[Region]) -> Iterator[Operation]:
    """The ops inside, outer ones first. The next op is looked up before one is handed out, which may therefore be erased."""
    for region in regions:
        block = region._first_block
        while block is not None:
            next_block = block._next_block
            op = block._first_op
            while op is not None:
                next_op = op._next_op
                yield op
                if op.regions:
                    yield from _nested(op.regions)
                op = next_op
            block = next_block


def _walk_op(self: Operation, *, reverse: bool = False, region_first: bool = False) -> Iterator[Operation]:
    if reverse or region_first:
        yield from _SLOW_WALKS[Operation](self, reverse=reverse, region_first=region_first)
        return
    yield self
    if self.regions:
        yield from _nested(self.regions)


def _walk_block(self: Block, *, reverse: bool = False, region_first: bool = False) -> Iterator[Operation]:
    if reverse or region_first:
        yield from _SLOW_WALKS[Block](self, reverse=reverse, region_first=region_first)
        return
    op = self._first_op
    while op is not None:
        next_op = op._next_op
        yield op
        if op.regions:
            yield from _nested(op.regions)
        op = next_op


def _walk_region(self: Region, *, reverse: bool = False, region_first: bool = False) -> Iterator[Operation]:
    if reverse or region_first:
        return _SLOW_WALKS[Region](self, reverse=reverse, region_first=region_first)
    return _nested((self,))


def _iterate_ops(self: BlockOps) -> Iterator[Operation]:
    op = self.block._first_op
    while op is not None:
        next_op = op._next_op
        yield op
        op = next_op


def _add_op(self: Block, operation: Operation) -> None:
    """`Block.add_op`. An op without regions contains no block, so that nobody has to look for this one in it."""
    if operation.parent is not None:
        raise ValueError("Can't add to a block an operation already attached to a block.")
    if operation.regions and operation.is_ancestor(self):
        raise ValueError("Can't add an operation to a block contained in the operation.")
    operation.parent = self
    last = self._last_op
    if last is None:
        self._first_op = operation
    else:
        last._next_op = operation
        operation._prev_op, operation._next_op = last, None
    self._last_op = operation


def _init_block(self: Block, ops: Iterable[Operation] = (), *, arg_types: Iterable[Attribute] = ()) -> None:
    self._args = tuple([BlockArgument(kind, self, index, UNKNOWN_LOC) for index, kind in enumerate(arg_types)])
    self._first_op = self._last_op = None
    for op in ops:
        self.add_op(op)


def _drop_references(self: Operation) -> None:
    """`Operation.drop_all_references`: uses are unlinked here, not by a call for each."""
    self.parent = None
    for value, use in zip(self._operands, self._operand_uses):
        before, after = use._prev_use, use._next_use
        if before is None:
            value.first_use = after
        else:
            before._next_use = after
        if after is not None:
            after._prev_use = before
    self._operand_uses = ()
    for successor, use in zip(self._successors, self._successor_uses):
        successor.remove_use(use)
    self._successor_uses = self._successors = ()
    for region in self.regions:
        region.drop_all_references()


def _constructs(op: Any, construct: VarIRConstruct) -> Sequence[Any]:
    """What a named operand, result, region or successor is one of."""
    if construct is _OPERAND:
        return op._operands
    if construct is _RESULT:
        return op.results
    return op.regions if construct is VarIRConstruct.REGION else op._successors


def _segment_accessor(self: BaseAttrAccessor, obj: Any, objtype: Any = None) -> Any:
    option = self.option
    sizes: Any = (obj.properties if option.as_property else obj.attributes)[option.attribute_name]
    return self.index(sizes.get_values(), _constructs(obj, self.construct))


def _first_accessor(self: BeforeVariadicSingleAccessor, obj: Any, objtype: Any = None) -> Any:
    """A named operand or result with none but single ones before it."""
    return _constructs(obj, self.construct)[self.idx]


_unpacked: Any = DenseArrayBase.__dict__["get_values"]


def _values_of_array(self: DenseArrayBase[Any]) -> tuple[Any, ...]:
    """`DenseArrayBase.get_values`, unpacked once: an attribute never changes."""
    found = self.__dict__.get("_gradir_values")
    if found is None:
        found = _unpacked(self)
        object.__setattr__(self, "_gradir_values", found)  # the dataclass is frozen; what compares and hashes is its fields
    return found


class _PlainInstances(type(Protocol)):
    """Abstract classes whose `isinstance` looks at base classes alone, as long as nobody registers virtual subclasses of them.

    Derived from what makes protocols, so that a class may be a protocol and IR.
    """

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__
    __eq__, __hash__ = type.__eq__, type.__hash__

    def register(cls: Any, subclass: type) -> type:
        """`ABCMeta.register`, for which the class and its bases become what they were."""
        for base in cls.__mro__:
            if type(base) is _PlainInstances:
                base.__class__ = ABCMeta  # pyright: ignore[reportAttributeAccessIssue]
        return ABCMeta.register(cls, subclass)


def _plain_instances(kind: type) -> None:
    """Give `kind` and its subclasses that metaclass; classes that come later inherit it."""
    if type(kind) is ABCMeta:
        kind.__class__ = _PlainInstances  # pyright: ignore[reportAttributeAccessIssue]
    for derived in type.__subclasses__(kind):
        _plain_instances(derived)


def _item(self: SSAValues[Any], index: Any) -> Any:
    found = tuple.__getitem__(self, index)
    return found if type(index) is int else SSAValues(found)


_FIELDS: tuple[tuple[type, str, str], ...] = (
    (SSAValue, "type", "_type"),
    (OpResult, "owner", "op"),
    (BlockArgument, "owner", "block"),
    (Block, "args", "_args"),
    (Block, "first_op", "_first_op"),
    (Block, "last_op", "_last_op"),
    (Block, "parent_node", "parent"),
    (Region, "first_block", "_first_block"),
    (Region, "parent_node", "parent"),
    (Operation, "next_op", "_next_op"),
    (Operation, "prev_op", "_prev_op"),
    (Operation, "parent_node", "parent"),
    (Use, "operation", "_operation"),
    (Use, "index", "_index"),
)
"""Properties that read one field: read without a Python frame."""


_METHODS: tuple[tuple[type, str, Any], ...] = (
    *((kind, "__hash__", object.__hash__) for kind in (_IRNode, IRDLOperation, SSAValue, Use)),  # all compare by identity, as every
    *((kind, "__eq__", object.__eq__) for kind in (_IRNode, IRDLOperation, SSAValue, Use)),  # object does that says nothing
    *((kind, name, property(attrgetter(field))) for kind, name, field in _FIELDS),
    (Operation, "create", classmethod(_create)),
    (Operation, "walk", _walk_op),
    (Block, "walk", _walk_block),
    (Region, "walk", _walk_region),
    (Block, "add_op", _add_op),
    (BlockOps, "__iter__", _iterate_ops),
    (Operation, "operands", property(OpOperands, Operation.__dict__["operands"].fset)),
    (Operation, "drop_all_references", _drop_references),
    (Block, "__init__", _init_block),
    (BeforeVariadicSingleAccessor, "__get__", _first_accessor),
    (BaseAttrAccessor, "__get__", _segment_accessor),
    (DenseArrayBase, "get_values", _values_of_array),
    (SSAValues, "__getitem__", _item),
)

ORIGINAL: dict[tuple[type, str], Any] = {(kind, name): kind.__dict__.get(name) for kind, name, _ in _METHODS}
"""What was there before, for whoever compares."""


def _install() -> None:
    for kind in (_IRNode, IRWithUses, IRWithName, Attribute):
        _plain_instances(kind)
    for kind, name, method in _METHODS:
        setattr(kind, name, method)


_install()
