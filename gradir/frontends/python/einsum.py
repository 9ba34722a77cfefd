"""`einsum`: sums of products by letters, as transposes, reductions and `dot_general`."""

from __future__ import annotations

import string
from typing import Any

from gradir.frontends.python.arrays import Array
from gradir.frontends.python.contraction import dot_general
from gradir.frontends.python.operands import as_array, common_dtype
from gradir.frontends.python.reduction import sum
from gradir.frontends.python.shape import transpose
from gradir.frontends.python.trace import user_error


def einsum(spec: str, *operands: Any) -> Array:
    """Sum of products over the letters that the result lacks: `einsum("bij,bjk->bik", x, y)`. Operands are taken from the left"""
    if not isinstance(spec, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (numpy has a form with arrays first)
        raise user_error("einsum: the letters come first", code="GR001", expected='a text such as "ij,jk->ik"', found=repr(spec)[:80])
    dtype = common_dtype(*operands) if operands else None
    arrays = [as_array(x, dtype) for x in operands]
    inputs, result = _letters(spec, arrays)
    letters, x = inputs[0], arrays[0]
    for k in range(1, len(arrays)):
        later = set("".join(inputs[k + 1 :]) + result)
        letters, x = _product(letters, x, inputs[k], arrays[k], later)
    letters, x = _without(letters, x, set(letters) - set(result))
    return transpose(x, [letters.index(c) for c in result])


def _letters(spec: str, arrays: list[Array]) -> tuple[list[str], str]:
    """The letters of each operand and of the result; GradirError GR001 where they do not fit."""
    left, arrow, result = _without_dots(spec.replace(" ", ""), arrays).partition("->")
    inputs = left.split(",")
    if not arrow:
        result = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
    known = set("".join(inputs))
    repeated = next((c for part in (*inputs, result) for c in part if part.count(c) > 1), "")
    odd = next((c for c in "".join(inputs) + result if not c.isalpha()), repeated)
    if odd or not set(result) <= known or len(inputs) != len(arrays):
        raise user_error(
            "einsum: the letters do not fit",
            code="GR001",
            op="nd.dot_general",
            expected=f"one group of distinct letters for each of {len(arrays)} operands, and a result of letters in them",
            found=f"{spec!r}",
            hint="a letter twice in one operand is not taken: use gradir.trace or gradir.diagonal",
        )
    sizes: dict[str, int] = {}
    for part, x in zip(inputs, arrays):
        if len(part) != x.ndim:
            raise user_error("einsum: rank differs", code="GR001", expected=f"{len(part)} dimensions for {part!r}", found=str(x.shape))
        for letter, size in zip(part, x.shape):
            if sizes.setdefault(letter, size) != size:
                raise user_error(
                    f"einsum: {letter!r} has two sizes", code="GR001", op="nd.dot_general", expected=str(sizes[letter]), found=str(size)
                )
    return inputs, result


def _without_dots(spec: str, arrays: list[Array]) -> str:
    """The letters with `...` spelled out: the dimensions that an operand has beyond its letters, counted from the last of them."""
    left, arrow, result = spec.partition("->")
    inputs = left.split(",")
    if "..." not in spec or len(inputs) != len(arrays):
        return spec
    extra = [x.ndim - len(part.replace("...", "")) if "..." in part else 0 for part, x in zip(inputs, arrays)]
    free = [c for c in string.ascii_letters if c not in spec]
    if not min(extra) >= 0 or max(extra) > len(free):
        return spec
    names = "".join(free[: max(extra)])
    inputs = [part.replace("...", names[len(names) - n :]) for part, n in zip(inputs, extra)]
    if not arrow:
        letters = [c for c in set(left) - {",", "."} if left.count(c) == 1]
        result = names + "".join(sorted(letters))
    return ",".join(inputs) + "->" + result.replace("...", names)


def _without(letters: str, x: Array, gone: set[str]) -> tuple[str, Array]:
    """Sum over the dimensions of some letters."""
    if not gone:
        return letters, x
    axes = tuple(k for k, c in enumerate(letters) if c in gone)
    return "".join(c for c in letters if c not in gone), sum(x, axes)


def _product(a: str, x: Array, b: str, y: Array, later: set[str]) -> tuple[str, Array]:
    """One `dot_general`; letters that only one side has and nobody needs later are summed before it."""
    a, x = _without(a, x, set(a) - set(b) - later)
    b, y = _without(b, y, set(b) - set(a) - later)
    batch = [c for c in a if c in b and c in later]
    contract = [c for c in a if c in b and c not in later]
    pairs = [(tuple(a.index(c) for c in chosen), tuple(b.index(c) for c in chosen)) for chosen in (contract, batch)]
    free = [c for c in a if c not in b], [c for c in b if c not in a]
    return "".join((*batch, *free[0], *free[1])), dot_general(x, y, pairs[0], pairs[1])
