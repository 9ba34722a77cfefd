"""Order in memory of results: convolutions choose one, what is computed from them element by element keeps it.

A result whose memory order is not its own is a view of a transposed base, so a transpose between two of them costs nothing, and the
transposes around a convolution in the middle of a model are never executed. Whoever needs the own order (a return, a loop's carried
value, a reshape) copies once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.traits import IsTerminator

from gradir.dialects import nd
from gradir.dialects.types import Shape, shape_of
from gradir.lowering.convert_nd_to_linalg.views import Linear, View, dim, dims

MOST_STEPS = 16
"""Ops that are followed from a result to where it is returned."""


class Layout(NamedTuple):
    """Order in memory of a result: `order[k]` is the dimension of the value that is dimension k in memory."""

    order: tuple[int, ...]

    @property
    def is_plain(self) -> bool:
        """True when memory has the value's own order."""
        return self.order == tuple(range(len(self.order)))

    def shape(self, shape: Shape) -> Shape:
        return tuple(shape[d] for d in self.order)

    def view(self, base: SSAValue, element: Attribute) -> View:
        """The value, read from memory in this order."""
        index = dims(*self.order)
        return View(base, index, element)

    def loops(self) -> tuple[Linear, ...]:
        """The value's dimensions as loops that follow memory."""
        return _loops(self.order)


@lru_cache(None)
def _loops(order: tuple[int, ...]) -> tuple[Linear, ...]:
    return tuple(dim(order.index(d)) for d in range(len(order)))


@lru_cache(None)
def plain(rank: int) -> Layout:
    """The own order of a value."""
    return Layout(tuple(range(rank)))


def layout_of(value: SSAValue) -> Layout:
    """The order in which the one user wants the result, when that user is a transpose; else its own."""
    if value.has_one_use():
        (use,) = value.uses
        if isinstance(use.operation, nd.TransposeOp):
            return Layout(use.operation.numbers("perm"))
    return plain(len(shape_of(value)))


def returned_order(value: SSAValue) -> tuple[int, ...] | None:
    """The order of dimensions in which a value leaves its function or region, when all that happens to it until then is elementwise."""
    rank = len(shape_of(value))
    order = tuple(range(rank))
    for _ in range(MOST_STEPS):
        if not value.has_one_use():
            return None
        (use,) = value.uses
        user = use.operation
        if isinstance(user, nd.TransposeOp):
            order = tuple(order[d] for d in user.numbers("perm"))
        elif user.has_trait(IsTerminator):
            return order
        elif len(user.results) != 1 or user.regions or not isinstance(user, nd.NdOp) or shape_of(user.results[0]) != shape_of(value):
            return None
        value = user.results[0] if user.results else value
    return None


def layout_in_memory(view: View, shape: Shape) -> Layout | None:
    """The order in which the base of a view holds the dimensions of its value; None when it does not walk all of them plainly."""
    if not view.is_tensor:
        return None
    walked = [form.dim for n, form in zip(shape_of(cast("SSAValue", view.base)), view.index) if n != 1]
    long = [d for d, n in enumerate(shape) if n != 1]
    if None in walked or sorted(cast("list[int]", walked)) != long:
        return None
    if walked == long:
        return plain(len(shape))
    return Layout((*(d for d, n in enumerate(shape) if n == 1), *cast("list[int]", walked)))


def followed_layout(inputs: Sequence[View], shape: Shape, laid_out: Container[SSAValue]) -> Layout:
    """The order in which most operands lie in memory, if one of them is `laid_out` on purpose; else the own order.

    Arguments lie as somebody wants them, other values in their own order had no reason to lie otherwise: they count less. At a tie the own
    order wins.
    """
    own = plain(len(shape))
    bases = [view.base for view in inputs if isinstance(view.base, SSAValue)]
    if not any(base in laid_out for base in bases):
        return own
    votes: Counter[Layout] = Counter()
    for view in inputs:
        layout = layout_in_memory(view, shape)
        if layout is not None:
            known = isinstance(view.base, SSAValue) and view.base in laid_out
            votes[layout] += 2 if known or isinstance(view.base, BlockArgument) else 1
    most = max(votes.values(), default=0)
    return own if votes[own] == most else next(layout for layout, n in votes.items() if n == most)
