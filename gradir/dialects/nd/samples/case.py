"""Writing samples: the text of a module around one line that uses an op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from gradir.dialects.nd.base import Sample
from gradir.dialects.types import element_type, tensor

Array = np.ndarray[Any, Any]
BF16 = ml_dtypes.bfloat16
INF, NAN = float("inf"), float("nan")
SPECIAL = (NAN, INF, -INF, -0.0, 0.0, 1.0, -2.5, 1e-40)


def type_text(value: Array, names: Sequence[str] = ()) -> str:
    """The tensor type of an array; a non-empty name stands for the run-time size of its dimension."""
    shape = [names[d] if d < len(names) and names[d] else n for d, n in enumerate(value.shape)]
    return str(tensor(element_type(value.dtype), shape))


def case(
    name: str,
    line: str,
    inputs: Sequence[Any],
    result: str,
    wrt: Sequence[int] = (),
    *,
    types: Mapping[int, str] | None = None,
    names: Mapping[int, Sequence[str]] | None = None,
    before: Sequence[str] = (),
) -> Sample:
    """A sample whose function is `line`, after the lines `before`; its result type is `result`.

    In the lines `%0`, `%1`, ... are the arguments and `{0}`, `{1}`, ... their types, followed by the result type. Inputs are arrays, or
    Python ints for `index` arguments; `names` gives run-time sizes of arguments.
    """
    arrays = tuple(np.asarray(value) for value in inputs)
    texts = [
        (types or {}).get(k) or ("index" if isinstance(value, int) else type_text(array, (names or {}).get(k, ())))
        for k, (value, array) in enumerate(zip(inputs, arrays))
    ]
    arguments = ", ".join(f"%{k}: {text}" for k, text in enumerate(texts))
    body = "".join(f"  {text.format(*texts, result)}\n" for text in (*before, f"%result = {line}"))
    text = f"func.func @f({arguments}) -> {result} {{\n{body}  return %result : {result}\n}}\n"
    return Sample(name, text, lambda: tuple(array.copy() for array in arrays), tuple(wrt))


def same(name: str, line: str, inputs: Sequence[Any], wrt: Sequence[int] = ()) -> Sample:
    """A sample of an op whose one type is that of its first input: `line` lacks ` : type`."""
    kind = type_text(np.asarray(inputs[0]))
    return case(name, f"{line} : {kind}", inputs, kind, wrt)


def pairs(values: Sequence[Any], dtype: Any) -> tuple[Array, Array]:
    """Two square arrays that meet every pair of the values once."""
    row = np.array(values, dtype)
    return np.repeat(row[:, None], len(row), 1).copy(), np.repeat(row[None, :], len(row), 0).copy()


def wave(*shape: int, dtype: Any = np.float64, scale: float = 1.0, shift: float = 0.0) -> Array:
    """Distinct, repeatable numbers in [shift - scale, shift + scale], without ties."""
    count = int(np.prod(shape))
    numbers = np.sin(np.arange(1, count + 1) * 1.7) * scale + shift
    return numbers.reshape(shape).astype(dtype)


def limits(dtype: Any) -> list[int]:
    """Integers of that type at which arithmetic goes wrong first."""
    info = np.iinfo(dtype)
    signed = [-1, -7] if info.min < 0 else []
    return [0, 1, *signed, 7, 2, int(info.min), int(info.max), int(info.max) - 1]
