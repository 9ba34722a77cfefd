"""Row-major reshapes of tensors in memory: which neighbouring dimensions merge and which split, and the two ops that say so.

`tensor.collapse_shape` and `tensor.expand_shape` never copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.ir import SSAValue

from gradir import size_algebra
from gradir.dialects.types import Dim, Shape, element_of
from gradir.lowering.convert_nd_to_linalg.nests import Nests


class Run(NamedTuple):
    """Neighbouring dimensions before and after with one product of sizes."""

    before: tuple[int, ...]
    after: tuple[int, ...]


def runs(before: Shape, after: Shape) -> list[Run] | None:
    """The finest runs of a reshape; dimensions of size 1 at the end join the last one. None when named sizes do not line up."""
    found: list[Run] = []
    i = j = 0
    while i < len(before) and j < len(after):
        a, b = [i], [j]
        i, j = i + 1, j + 1
        while not _equal(before, a, after, b):
            if _smaller(before, a, after, b) and i < len(before):
                a.append(i)
                i += 1
            elif j < len(after):
                b.append(j)
                j += 1
            else:
                return None
        found.append(Run(tuple(a), tuple(b)))
    rest = Run(tuple(range(i, len(before))), tuple(range(j, len(after))))
    if rest.before or rest.after:
        last = found.pop() if found else Run((), ())
        found.append(Run((*last.before, *rest.before), (*last.after, *rest.after)))
    return found


def runs_without_units(before: Shape, after: Shape) -> list[Run] | None:
    """The same, without dimensions of size 1 that come or go: a run of one dimension on each side stays whole."""
    found = runs(before, after)
    if found is None:
        return None
    kept = (run if len(run.before) == len(run.after) == 1 else Run(_wide(before, run.before), _wide(after, run.after)) for run in found)
    return [run for run in kept if run.before or run.after]


def _wide(shape: Shape, dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(d for d in dims if shape[d] != 1)


def _equal(before: Shape, a: Sequence[int], after: Shape, b: Sequence[int]) -> bool:
    return size_algebra.same_count(_count(before, a), _count(after, b))


def _smaller(before: Shape, a: Sequence[int], after: Shape, b: Sequence[int]) -> bool:
    """Whether the run on the left has to grow: it has fewer names, or as many and a smaller number."""
    return _magnitude(_count(before, a)) < _magnitude(_count(after, b))


def _count(shape: Shape, dims: Sequence[int]) -> int | str:
    """The number of elements, sizes without a name being equal."""
    count = total(["?" if shape[d] is None else shape[d] for d in dims])
    assert count is not None
    return count


def _magnitude(size: int | str) -> tuple[int, int]:
    """Degree and largest number of a product of sizes."""
    terms = size_algebra.polynomial(size)
    return max((len(atoms) for atoms, _ in terms), default=0), max((abs(number) for _, number in terms), default=0)


def total(sizes: Sequence[Dim]) -> Dim:
    """The product as a size."""
    return size_algebra.product(sizes)


def reshape_in_memory(nests: Nests, base: SSAValue, before: Shape, after: Shape) -> SSAValue:
    """`base` (of shape `before`) in shape `after`: collapse to one dimension a run, then expand."""
    if before == after:
        return base
    found = runs(before, after)
    if found is None:
        found = [Run(tuple(range(len(before))), tuple(range(len(after))))]
    if not after:
        return nests.extract_slice(base, [0] * len(before), before, [1] * len(before), range(len(before)))
    if not before:  # no reassociation has no dimensions to begin with: an element is written, not renamed
        return nests.insert_slice(base, nests.empty(element_of(base), after), [0] * len(after), after, [1] * len(after))
    middle = tuple(total([before[d] for d in run.before]) for run in found)
    if len(middle) < len(before):
        base = nests.collapse(base, [run.before for run in found], middle)
    if len(after) > len(middle):
        base = nests.expand(base, [run.after for run in found], after)
    return base
