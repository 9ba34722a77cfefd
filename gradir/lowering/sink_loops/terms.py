"""Computations as terms: equal ones are the same number, so that "does this change?" is a comparison of numbers."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import NamedTuple

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.dialects.upstream import arith, math, scf

MOST_TERMS = 2000
_SAME_OR_POSITIVE = (arith.UIToFPOp, arith.SIToFPOp, math.AbsFOp)
"""What they give is never -0: an integer 0 is +0."""


class Node(NamedTuple):
    """An op on terms, a constant, or (`kind` None) a value that is given."""

    kind: type[Operation] | None
    facts: Hashable
    operands: tuple[int, ...] = ()


class Terms:
    """The table of terms. Operands have smaller numbers than what is made of them."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._numbers: dict[Node, int] = {}

    def make(self, node: Node) -> int:
        """The number of a term."""
        found = self._numbers.get(node)
        if found is None:
            found = self._numbers[node] = len(self.nodes)
            self.nodes.append(node)
        return found

    def given(self, what: Hashable) -> int:
        """A value about which nothing is known."""
        return self.make(Node(None, what))

    def constant(self, attribute: Attribute) -> int:
        return self.make(Node(arith.ConstantOp, attribute))

    def number(self, term: int) -> float | None:
        """The number that a constant is."""
        facts = self.nodes[term].facts
        return float(facts.value.data) if isinstance(facts, IntegerAttr | FloatAttr) else None

    def of_block(self, block: Block, values: dict[SSAValue, int]) -> list[int] | None:
        """What `block` hands on, given the terms of its arguments; None for a block that holds more than arithmetic."""
        for op in block.ops:
            if isinstance(op, arith.ConstantOp):
                values[op.result] = self.constant(op.value)
                continue
            operands = tuple(self.of_value(v, values) for v in op.operands)
            if isinstance(op, scf.YieldOp | scf.ConditionOp):
                return list(operands)
            if op.regions or len(op.results) != 1 or len(self.nodes) > MOST_TERMS:
                return None
            facts = (tuple(sorted(op.properties.items(), key=lambda item: item[0])), op.results[0].type)
            values[op.results[0]] = self.make(Node(type(op), facts, operands))
        return None

    def of_value(self, value: SSAValue, values: Mapping[SSAValue, int]) -> int:
        """The term of a value of the block, or of one from outside."""
        if value in values:
            return values[value]
        return self.constant(value.owner.value) if isinstance(value.owner, arith.ConstantOp) else self.given(value)

    def replaced(self, replacement: Mapping[int, int]) -> list[int]:
        """Every term with those in `replacement` replaced inside of it."""
        new: list[int] = []
        for term, node in enumerate(list(self.nodes)):
            new.append(
                replacement[term] if term in replacement else self.make(node._replace(operands=tuple(new[o] for o in node.operands)))
            )
        return new

    def simplified(self, known: Mapping[int, bool], never_minus_zero: Collection[int]) -> list[int]:
        """Every term where those in `known` are true or false; the given values in `never_minus_zero` are no -0."""
        constants = {truth: self.constant(IntegerAttr(truth, i1)) for truth in (False, True)}
        new: list[int] = []
        for term, node in enumerate(list(self.nodes)):
            simple = self._simplified(node._replace(operands=tuple(new[o] for o in node.operands)), never_minus_zero)
            truth = known.get(term, known.get(simple))
            new.append(simple if truth is None else constants[truth])
        return new

    def _simplified(self, node: Node, never_minus_zero: Collection[int]) -> int:
        numbers = [self.number(o) for o in node.operands]
        match node.kind:
            case arith.SelectOp:
                if numbers[0] is not None:
                    return node.operands[1 if numbers[0] else 2]
                if node.operands[1] == node.operands[2]:
                    return node.operands[1]
            case arith.AndIOp | arith.OrIOp if self._truth(node) is not None:
                neutral = node.kind is arith.AndIOp
                truths = [self._truth_of(o) for o in node.operands]
                if (not neutral) in truths:
                    return node.operands[truths.index(not neutral)]
                return node.operands[1 - truths.index(neutral)]
            case arith.AddiOp | arith.XOrIOp if 0 in numbers:
                return node.operands[1 - numbers.index(0)]
            case arith.SubfOp | arith.SubiOp if numbers[1] == 0 and str(numbers[1]) != "-0.0":
                return node.operands[0]  # x - 0 is x, for -0 too
            case arith.AddfOp if 0 in numbers:
                zero = numbers.index(0)
                other = node.operands[1 - zero]  # x + -0 is x; x + +0 is x but for x = -0
                if str(numbers[zero]) == "-0.0" or self.is_never_minus_zero(other, never_minus_zero):
                    return other
            case arith.UIToFPOp | arith.SIToFPOp if numbers[0] == 0:
                return self._zero(node)
            case _:
                pass
        return self.make(node)

    def _truth_of(self, term: int) -> bool | None:
        """The truth of an i1 constant."""
        facts = self.nodes[term].facts
        return bool(facts.value.data) if isinstance(facts, IntegerAttr) and facts.type == i1 else None

    def _truth(self, node: Node) -> bool | None:
        return next((t for t in map(self._truth_of, node.operands) if t is not None), None)

    def opposite_of(self, term: int) -> int | None:
        """x where the term is `x xor true`."""
        node = self.nodes[term]
        if node.kind is not arith.XOrIOp:
            return None
        truths = [self._truth_of(o) for o in node.operands]
        return node.operands[1 - truths.index(True)] if True in truths else None

    def _zero(self, node: Node) -> int:
        facts = node.facts
        assert isinstance(facts, tuple)
        return self.constant(FloatAttr(0.0, facts[1]))

    def is_never_minus_zero(self, term: int, given: Collection[int]) -> bool:
        """Whether the float is something else than -0, if the given values in `given` are."""
        node = self.nodes[term]
        if term in given or node.kind in _SAME_OR_POSITIVE:
            return True
        if node.kind is arith.ConstantOp:
            return str(self.number(term)) != "-0.0"
        if node.kind is arith.AddfOp:  # rounded to nearest, only -0 + -0 is -0
            return any(self.is_never_minus_zero(o, given) for o in node.operands)
        if node.kind is arith.SelectOp:
            return all(self.is_never_minus_zero(o, given) for o in node.operands[1:])
        return node.kind is arith.MulfOp and node.operands[0] == node.operands[1]

    def leaves(self, terms: Iterable[int]) -> set[int]:
        """The given values that `terms` depend on."""
        todo, seen = list(terms), set[int]()
        while todo:
            term = todo.pop()
            if term not in seen:
                seen.add(term)
                todo += self.nodes[term].operands
        return {term for term in seen if self.nodes[term].kind is None}
