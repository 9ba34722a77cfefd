"""`blas.contract`: a contraction by the BLAS that numpy brings, `{spec: "ab,bc->ac", threads: 2}`.

The letters are dimensions as in `einsum`; those of the result are batches, then rows, then columns (or columns, then rows). Products go to
`numpy.matmul`, which writes into the result and hands transposed operands to BLAS as they are.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np

from gradir.runtime.library import Array, register

Config = Mapping[str, Any]

NAME = "blas.contract"


@cache
def set_threads() -> Any:
    """The function that tells numpy's OpenBLAS how many threads to use; None where numpy has another BLAS."""
    folder = Path(np.__file__).parent
    places = (folder.parent / "numpy.libs", folder / ".libs", folder / ".dylibs")
    files = [file for place in places for file in sorted(place.glob("*openblas*"))]
    for file in files:
        try:
            library = ctypes.CDLL(str(file))
        except OSError:
            continue
        for name in (
            "scipy_openblas_set_num_threads64_",
            "scipy_openblas_set_num_threads",
            "openblas_set_num_threads64_",
            "openblas_set_num_threads",
        ):
            function = getattr(library, name, None)
            if function is not None:
                function.argtypes, function.restype = [ctypes.c_int], None
                return function
    return None


@cache
def split(spec: str) -> tuple[str, str, str, str, bool] | None:
    """(batch, rows, columns, summed, whether rows come before columns in the result); None for what is no product of matrices."""
    inputs, result = spec.split("->")
    a, b = inputs.split(",")
    batch = "".join(c for c in result if c in a and c in b)
    rows = "".join(c for c in result if c in a and c not in b)
    columns = "".join(c for c in result if c in b and c not in a)
    summed = "".join(c for c in a if c in b and c not in result)
    if len(batch + rows + summed) != len(a) or len(batch + columns + summed) != len(b) or len(set(a)) != len(a) or len(set(b)) != len(b):
        return None
    if result == batch + rows + columns:
        return batch, rows, columns, summed, True
    return (batch, rows, columns, summed, False) if result == batch + columns + rows else None


def contract(config: Config, outputs: Sequence[Array], a: Array, b: Array) -> None:
    """`out[batch, rows, columns] = sum_k a[batch, rows, k] b[batch, k, columns]`, operands with their dimensions in any order."""
    (out,) = outputs
    spec = str(config["spec"])
    parts = split(spec)
    assert parts is not None, spec
    batch, rows, columns, summed, straight = parts
    left, right = spec.split("->")[0].split(",")
    x, y = _arranged(a, left, batch, rows, summed), _arranged(b, right, batch, summed, columns)
    set_count = set_threads()
    if set_count is not None:
        set_count(int(config["threads"]))
    with np.errstate(all="ignore"):
        shape = x.shape[:-2]
        if straight:
            np.matmul(x, y, out=out.reshape((*shape, x.shape[-2], y.shape[-1])))
        else:
            np.matmul(y.swapaxes(-1, -2), x.swapaxes(-1, -2), out=out.reshape((*shape, y.shape[-1], x.shape[-2])))


def _arranged(a: Array, letters: str, batch: str, first: str, second: str) -> Array:
    """Dimensions in the order batch, first, second, the last two groups as one dimension each; a view where strides allow it."""
    sizes = dict(zip(letters, a.shape))
    ordered = a.transpose([letters.index(c) for c in batch + first + second])
    shape = (*(sizes[c] for c in batch), math.prod(sizes[c] for c in first), math.prod(sizes[c] for c in second))
    return cast("Array", ordered.reshape(shape))


register(NAME, contract, into=True)
