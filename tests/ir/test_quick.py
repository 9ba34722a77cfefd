"""The quicker forms of xDSL's methods (`gradir.ir.quick`) against the methods that they stand for."""

from __future__ import annotations

from abc import ABC, ABCMeta
from typing import Any, Protocol

import pytest
from xdsl.builder import ImplicitBuilder
from xdsl.dialects import cf, test
from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, IntegerType, ModuleOp, StringAttr, UnregisteredOp, f32, i32, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.ir.core import BlockOps, OpOperands, SSAValues
from xdsl.irdl.operations import BaseAccessor, BaseAttrAccessor, BeforeVariadicSingleAccessor

from gradir.dialects.upstream import arith, linalg, scf
from gradir.ir.quick import ORIGINAL
from gradir.ir.text import parse_module

TEXT = """
func.func @f(%a: i32, %b: i32, %c: i1) -> i32 {
  %0 = arith.addi %a, %b : i32
  %1 = scf.if %c -> (i32) {
    %2 = arith.muli %0, %0 : i32
    scf.yield %2 : i32
  } else {
    %3 = scf.if %c -> (i32) {
      scf.yield %a : i32
    } else {
      scf.yield %b : i32
    }
    scf.yield %3 : i32
  }
  func.return %1 : i32
}
func.func @g() {
  func.return
}
"""


@pytest.fixture
def module() -> ModuleOp:
    return parse_module(TEXT)


def _function(module: ModuleOp) -> Block:
    op = module.body.block.first_op
    assert op is not None
    return op.regions[0].block


def _fields(op: Operation) -> dict[str, Any]:
    """Everything an op holds, with values and regions by identity."""
    found = {name: value for name, value in vars(op).items() if not name.startswith("_operand_uses")}
    found["uses"] = [(use.operation is op, use.index) for use in op._operand_uses]
    found["results"] = [(r.type, r.op is op, r.index, r.name_hint) for r in op.results]
    return {**found, "types": (type(op._operands), type(op.results), type(op.properties), type(op.attributes))}


@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"region_first": True}, {"reverse": True, "region_first": True}])
def test_walks_come_in_the_same_order(module: ModuleOp, options: dict[str, bool]) -> None:
    block = _function(module)
    for node in (module, module.body, block):
        before = list(ORIGINAL[type(node) if node is not module else Operation, "walk"](node, **options))
        assert list(node.walk(**options)) == before
        assert len(before) >= 8


def _names_while_erasing(walk: Any) -> list[str]:
    """Names of the ops of a walk that erases one of them on the way."""
    module = parse_module(TEXT)
    names: list[str] = []
    for op in walk(module):
        names.append(op.name)
        if op.name == "func.func" and op.properties["sym_name"] == StringAttr("f"):
            op.detach()
            op.erase()
    assert [op.name for op in module.body.block.ops] == ["func.func"]
    return names


def test_a_walk_goes_on_after_an_op_that_is_erased() -> None:
    names = _names_while_erasing(Operation.walk)
    assert names == _names_while_erasing(ORIGINAL[Operation, "walk"])
    assert names.count("func.func") == 2


def test_ops_of_a_block_in_order_and_in_number(module: ModuleOp) -> None:
    block = _function(module)
    assert list(block.ops) == list(ORIGINAL[BlockOps, "__iter__"](block.ops))
    assert len(block.ops) == 3
    assert len(Block().ops) == 0


def _made(create: Any, kind: type[Operation], block: Block) -> Operation:
    one = list(block.args)
    inner = Region(Block([arith.ConstantOp(IntegerAttr(1, i32))]))
    return create(
        kind,
        operands=[one[0], one[1], one[0]],
        result_types=[i32, f32],
        properties={"p": StringAttr("x")},
        attributes={"a": IntegerAttr(1, i64)},
        regions=[inner],
    )


@pytest.mark.parametrize("kind", [scf.IfOp, arith.AddiOp, arith.AddfOp, UnregisteredOp.with_name("some.op")])
def test_created_ops_hold_the_same(kind: type[Operation]) -> None:
    found: list[dict[str, Any]] = []
    for create in (ORIGINAL[Operation, "create"].__func__, Operation.create.__func__):
        block = Block(arg_types=[i32, i32])
        op = _made(create, kind, block)
        assert op.regions[0].parent is op
        assert [(u.operation is op, u.index) for u in block.args[0].uses] == [(True, 2), (True, 0)]
        assert [u.index for u in block.args[1].uses] == [1]
        held = _fields(op)
        assert [id(v) for v in held.pop("_operands")] == [id(block.args[0]), id(block.args[1]), id(block.args[0])]
        assert len(held.pop("regions")) == 1
        held.setdefault("_successors", ())
        held.setdefault("_successor_uses", ())
        found.append(held)
    assert found[0] == found[1]


def test_defaults_of_properties_are_filled_in() -> None:
    block = Block(arg_types=[f32, f32])
    op = arith.AddfOp.create(operands=list(block.args), result_types=[f32])
    assert "fastmath" in op.properties


def test_an_implicit_builder_sees_created_ops() -> None:
    block = Block()
    with ImplicitBuilder(block):
        op = scf.YieldOp.create()
    assert list(block.ops) == [op]


def test_an_op_is_added_once_and_never_into_itself(module: ModuleOp) -> None:
    block = _function(module)
    attached = block.first_op
    assert attached is not None
    for add in (ORIGINAL[Block, "add_op"], Block.add_op):
        with pytest.raises(ValueError, match="already attached"):
            add(Block(), attached)
        inner = Block()
        outer = scf.IfOp.create(regions=[Region(inner)])
        with pytest.raises(ValueError, match="contained in the operation"):
            add(inner, outer)


def test_added_ops_are_linked_both_ways() -> None:
    block = Block()
    ops = [arith.ConstantOp(IntegerAttr(k, i32)) for k in range(3)]
    for op in ops:
        block.add_op(op)
    assert list(block.ops) == ops
    assert list(reversed(block.ops)) == ops[::-1]
    assert (block.first_op, block.last_op) == (ops[0], ops[2])


def test_operands_are_a_view(module: ModuleOp) -> None:
    block = _function(module)
    op = block.first_op
    assert op is not None
    view = op.operands
    assert isinstance(view, OpOperands)
    view[1] = block.args[0]
    assert list(op.operands) == list(view) == [block.args[0], block.args[0]]
    op.operands = [block.args[1], block.args[1]]
    assert list(view) == [block.args[1], block.args[1]]
    assert isinstance(op._operands[0:1], SSAValues) and op.results[0:1].types == (i32,)


def test_named_operands_results_regions_and_successors(module: ModuleOp) -> None:
    add = _function(module).first_op
    assert isinstance(add, arith.AddiOp)
    for name in ("lhs", "rhs", "result"):
        accessor = next(kind.__dict__[name] for kind in type(add).__mro__ if name in kind.__dict__)
        assert isinstance(accessor, BeforeVariadicSingleAccessor)
        assert getattr(add, name) is BaseAccessor.__get__(accessor, add)
    assert (add.lhs, add.rhs, add.result) == (add.operands[0], add.operands[1], add.results[0])
    branch, choice = cf.BranchOp.create(successors=[Block()]), scf.IfOp.create(regions=[Region(), Region()])
    for op, name, held in ((branch, "successor", branch.successors[0]), (choice, "false_region", choice.regions[1])):
        accessor = next(kind.__dict__[name] for kind in type(op).__mro__ if name in kind.__dict__)
        assert isinstance(accessor, BeforeVariadicSingleAccessor)
        assert getattr(op, name) is BaseAccessor.__get__(accessor, op) is held


def test_named_groups_of_operands() -> None:
    block = Block(arg_types=[i32, i32, i32])
    sizes = {"operandSegmentSizes": DenseArrayBase.from_list(i32, [2, 1])}
    for op in (linalg.GenericOp.create(operands=list(block.args), properties=sizes), scf.YieldOp.create(operands=list(block.args))):
        names = ("inputs", "outputs") if isinstance(op, linalg.GenericOp) else ("arguments",)
        for name in names:
            accessor = next(kind.__dict__[name] for kind in type(op).__mro__ if name in kind.__dict__)
            get: Any = ORIGINAL[BaseAttrAccessor, "__get__"] if isinstance(accessor, BaseAttrAccessor) else BaseAccessor.__get__
            found, before = getattr(op, name), get(accessor, op)
            assert tuple(found) == tuple(before) and len(found) > 0 and type(found) is type(before)
    assert tuple(linalg.GenericOp.create(operands=list(block.args), properties=sizes).outputs) == (block.args[2],)


def test_dropped_references_leave_the_lists_of_uses() -> None:
    for drop in (ORIGINAL[Operation, "drop_all_references"], Operation.drop_all_references):
        block = Block(arg_types=[i32])
        value = block.args[0]
        ops = [arith.AddiOp.create(operands=[value, value], result_types=[i32]) for _ in range(3)]
        drop(ops[1])
        assert [use.operation for use in value.uses] == [ops[2], ops[2], ops[0], ops[0]]
        drop(ops[2])
        drop(ops[0])
        assert value.first_use is None and not ops[0]._operand_uses


def test_blocks_are_made_alike() -> None:
    held: list[Any] = []
    for init in (ORIGINAL[Block, "__init__"], Block.__init__):
        block = Block.__new__(Block)
        op = arith.ConstantOp(IntegerAttr(1, i32))
        init(block, [op], arg_types=[i32, f32])
        held.append([(a.type, a.index, a.block is block, a.location) for a in block.args])
        assert list(block.ops) == [op] and (block.parent, block.name_hint, block.first_use) == (None, None, None)
    assert held[0] == held[1]


def test_numbers_of_arrays_are_unpacked_once_and_change_nothing() -> None:
    array, same = (DenseArrayBase.from_list(i64, [3, -1, 2]) for _ in range(2))
    assert array.get_values() == ORIGINAL[DenseArrayBase, "get_values"](array) == (3, -1, 2)
    assert array.get_values() is array.get_values()
    assert array == same and hash(array) == hash(same) and repr(array) == repr(same)


def test_identity_is_equality(module: ModuleOp) -> None:
    a, b = (arith.ConstantOp(IntegerAttr(1, i32)) for _ in range(2))
    assert a == a and a != b and a.results[0] == a.results[0] and a.results[0] != b.results[0]
    assert len({a, b, a}) == 2 and len({a.results[0], b.results[0]}) == 2


def test_regions_and_successors_are_held_and_left() -> None:
    for create in (ORIGINAL[Operation, "create"].__func__, Operation.create.__func__):
        for drop in (ORIGINAL[Operation, "drop_all_references"], Operation.drop_all_references):
            target, region = Block(), Region(Block())
            op = create(test.TestTermOp, successors=[target, target], regions=[region])
            assert [use.index for use in target.uses] == [1, 0] and list(op.successors) == [target, target] and region.parent is op
            drop(op)
            assert target.first_use is None and not op.successors and region.parent is None


class _Named(Protocol):
    def name_of(self) -> str: ...


def test_classes_of_others_are_ir_and_protocols() -> None:
    class Both(Attribute, _Named):
        name = "test.both"

        def name_of(self) -> str:
            return self.name

    assert issubclass(Both, Attribute) and isinstance(Both, ABCMeta) and not isinstance(i32, Both)


def test_virtual_subclasses_of_others_are_instances() -> None:
    class Abstract(Attribute, ABC):
        pass

    class Registered:
        pass

    kinds = {kind: type(kind) for kind in Abstract.__mro__}
    assert not isinstance(Registered(), Abstract)
    try:
        Abstract.register(Registered)
        assert isinstance(Registered(), Abstract) and isinstance(Registered(), Attribute) and not isinstance(i32, Abstract)
    finally:
        for kind, before in kinds.items():
            if type(kind) is not before:
                kind.__class__ = before


def test_classes_of_ir_are_told_apart_as_before() -> None:
    value = arith.ConstantOp(IntegerAttr(1, i32)).results[0]
    assert isinstance(value, SSAValue) and isinstance(value, OpResult) and not isinstance(value, BlockArgument)
    assert isinstance(i32, IntegerType | FloatAttr) and not isinstance(i32, FloatAttr) and isinstance(i32, Attribute)
    assert issubclass(arith.AddiOp, Operation) and not issubclass(arith.AddiOp, Attribute)
    with pytest.raises(TypeError, match="abstract"):
        SSAValue(i32)  # pyright: ignore[reportAbstractUsage]
    assert all(isinstance(type(kind), type) and issubclass(type(kind), ABCMeta) for kind in (Operation, SSAValue, Attribute))


def test_fields_read_as_before(module: ModuleOp) -> None:
    blocks = [block for op in module.walk() for region in op.regions for block in region.blocks]
    nodes = [n for op in module.walk() for n in (op, *op.results, *op.regions, *op._operand_uses)]
    nodes += [n for block in blocks for n in (block, *block.args)]
    for (kind, name), original in ORIGINAL.items():
        if isinstance(original, property) and name != "operands":
            found = [node for node in nodes if isinstance(node, kind)]
            assert found, f"no {kind.__name__} to read {name} of"
            for node in found:
                assert getattr(node, name) is original.fget(node)  # pyright: ignore[reportOptionalCall]
