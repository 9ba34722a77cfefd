"""Damage to IR in memory: properties, operands, types, regions and places of ops change; the result is written in generic form.

Generic form says exactly what is there, so that whoever reads it meets every wrong operand count, type and property.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, StringAttr, UnitAttr, f32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from gradir.dialects.types import tensor
from gradir.ir.text import parse_module, print_module


def damage(text: str, rng: np.random.Generator, others: Sequence[str] = ()) -> str:
    """The program with one to three random changes, in generic form; attributes and types of `others` may come in."""
    module = parse_module(text, check=False)
    donors = [module, *(parse_module(other, check=False) for other in others)]
    stock = _Stock(donors)
    for _ in range(1 + int(rng.integers(3))):
        ops = [op for op in module.walk() if op is not module]
        if ops:
            change = _CHANGES[int(rng.integers(len(_CHANGES)))]
            change(ops[int(rng.integers(len(ops)))], rng, stock)
    return print_module(module, generic=True)


class _Stock:
    """Attributes, types and values to damage with."""

    def __init__(self, modules: Sequence[ModuleOp]) -> None:
        ops = [op for module in modules for op in module.walk()]
        self.names = list(dict.fromkeys(name for op in ops for name in op.properties))
        self.attributes: list[Attribute] = list(dict.fromkeys(value for op in ops for value in op.properties.values()))
        self.attributes += [IntegerAttr(n, i64) for n in (-1, 0, 1, 1 << 40)] + [StringAttr("x"), UnitAttr(), f32]
        self.attributes += [DenseArrayBase.from_list(i64, row) for row in ([], [0], [-1, 5], [0, 1, 2, 3, 4, 5, 6])]
        self.types: list[Attribute] = list(dict.fromkeys(result.type for op in ops for result in op.results))
        self.types += [tensor(f32, [0]), tensor(f32, [None]), tensor(f32, ["n"]), i64]
        self.values: list[SSAValue] = [result for op in modules[0].walk() for result in op.results]
        self.values += [a for op in modules[0].walk() for region in op.regions for block in region.blocks for a in block.args]


def _one(rows: Sequence[Any], rng: np.random.Generator) -> Any:
    return rows[int(rng.integers(len(rows)))]


def _property(op: Operation, rng: np.random.Generator, stock: _Stock) -> None:
    if op.properties:
        op.properties[_one(list(op.properties), rng)] = _one(stock.attributes, rng)


def _no_property(op: Operation, rng: np.random.Generator, stock: _Stock) -> None:
    if op.properties:
        del op.properties[_one(list(op.properties), rng)]


def _more_properties(op: Operation, rng: np.random.Generator, stock: _Stock) -> None:
    (op.properties if rng.random() < 0.5 else op.attributes)[_one(stock.names, rng)] = _one(stock.attributes, rng)


def _no_operand(op: Operation, rng: np.random.Generator, stock: _Stock) -> None:
    if op.operands:
        gone = int(rng.integers(len(op.operands)))
        op.operands = [value for k, value in enumerate(op.operands) if k != gone]


def _more_operands(op: Operation, rng: np.random.Generator, stock: _Stock) -> None:
    if stock.values:
        op.operands = [*op.operands, _one(stock.values, rng)]


def _other_operand(op: Operation, rng: np.random.Generator, stock: _Stock) -> None:
    if op.operands and stock.values:
        values = list(op.operands)
        values[int(rng.integers(len(values)))] = _one(stock.values, rng)
        op.operands = values


def _mixed_operands(op: Operation, rng: np.random.Generator, stock: _Stock) -> None:
    op.operands = [op.operands[int(k)] for k in rng.permutation(len(op.operands))]


def _result_type(op: Operation, rng: np.random.Generator, stock: _Stock) -> None:
    if op.results:
        _one(op.results, rng)._type = _one(stock.types, rng)


def _argument_type(op: Operation, rng: np.random.Generator, stock: _Stock) -> None:
    arguments = [a for region in op.regions for block in region.blocks for a in block.args]
    if arguments:
        _one(arguments, rng)._type = _one(stock.types, rng)


def _gone(op: Operation, rng: np.random.Generator, stock: _Stock) -> None:
    if not any(result.uses for result in op.results) and not op.regions:
        op.detach()
        op.erase()


def _elsewhere(op: Operation, rng: np.random.Generator, stock: _Stock) -> None:
    """To the end or the beginning of another block that is not inside of it."""
    top = op
    while (parent := top.parent_op()) is not None:
        top = parent
    inner = {id(block) for o in op.walk() for region in o.regions for block in region.blocks}
    blocks = [b for o in top.walk() for region in o.regions for b in region.blocks if id(b) not in inner]
    target = _one(blocks, rng)
    op.detach()
    if target.first_op is not None and rng.random() < 0.5:
        target.insert_op_before(op, target.first_op)
    else:
        target.add_op(op)


def _twice(op: Operation, rng: np.random.Generator, stock: _Stock) -> None:
    if op.parent is not None:
        op.parent.insert_op_before(op.clone(), op)


def _regions(op: Operation, rng: np.random.Generator, stock: _Stock) -> None:
    """A region more, one less, a block more, or no argument."""
    if not op.regions or rng.random() < 0.3:
        op.add_region(Region(Block()) if rng.random() < 0.5 else Region())
        return
    region = _one(op.regions, rng)
    blocks = list(region.blocks)
    if not blocks or rng.random() < 0.5:
        region.add_block(Block(arg_types=[_one(stock.types, rng)] if rng.random() < 0.5 else []))
    elif blocks[0].args and not blocks[0].args[-1].uses:
        blocks[0].erase_arg(blocks[0].args[-1])
    else:
        blocks[0].insert_arg(_one(stock.types, rng), len(blocks[0].args))


_CHANGES: tuple[Callable[[Operation, np.random.Generator, _Stock], None], ...] = (
    _property, _property, _no_property, _more_properties, _no_operand, _more_operands, _other_operand, _mixed_operands, _result_type,
    _argument_type, _gone, _elsewhere, _twice, _regions,
)  # fmt: skip
