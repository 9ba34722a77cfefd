"""Sorting: both parts of a complex operand move along; how complex keys compare is said by a comparator on their parts."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from gradir.dialects import nd
from gradir.lowering.split_complex.boundaries import name_parts, split_op
from gradir.lowering.split_complex.parts import Pair, Parts, Rule, is_complex_type, real_type


def split_sort(parts: Parts, op: nd.SortOp) -> Sequence[SSAValue | Pair]:
    """The comparator of `(a0, b0, a1, b1, ..)` gets `re a0, re b0, im a0, im b0` for an operand that was complex."""
    if op.comparator is not None:
        block = op.comparator.block
        arguments = list(block.args)
        for a, b in zip(arguments[::2], arguments[1::2]):
            if is_complex_type(a.type):
                re_a, re_b, im_a, im_b = (block.insert_arg(real_type(a.type), a.index) for _ in range(4))
                for old, pair in ((a, (re_a, im_a)), (b, (re_b, im_b))):
                    parts.pairs[old] = pair
                    name_parts(pair, old.name_hint)
                for new in (re_a, re_b, im_a, im_b):
                    new.location = a.location
    return split_op(parts, op)


RULES: dict[type[Operation], Rule] = {nd.SortOp: split_sort}
