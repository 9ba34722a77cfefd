"""Families of programs for GPUs: what one kernel family does, on which element types, at which sizes.

A size class is the shape of the first argument, from which the others follow: `aligned` (128-bit accesses fit), `odd`, `tail` (whole
vectors and a rest, more than one block), `one` and `zero`. `tests/ptx/test_programs.py` runs every member; `SAMPLE` is what CI runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import gradir as gd
from tests.targets import gpu_products as made

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
CLASSES = ("aligned", "odd", "tail", "one", "zero")

BF16, F8 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e4m3fn)
F16, F32, F64 = (np.dtype(t) for t in (np.float16, np.float32, np.float64))
I8, I16, I32, I64, U8, BOOL = (np.dtype(t) for t in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.bool_))
FLOATS = (F32, BF16, F16, F64)
NUMBERS = (*FLOATS, I8, I32, I64)


def values(random: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Floats around 0, small whole numbers."""
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return random.integers(0, 7, shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


def alone(random: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> list[Array]:
    """One argument."""
    return [values(random, shape, dtype)]


@dataclass(frozen=True, eq=False)
class Family:
    """`function(*inputs(random, shape, dtype))` for every size class and type; `tolerance` is relative, for f32."""

    name: str
    function: Callable[..., Any]
    sizes: Mapping[str, Shape]
    dtypes: tuple[np.dtype[Any], ...] = (F32,)
    inputs: Callable[[np.random.Generator, Shape, np.dtype[Any]], list[Array]] = alone
    tolerance: float = 2e-5
    without: frozenset[str] = field(default_factory=frozenset[str])
    """Members that are not defined: `zero`, `f16 zero`."""

    def members(self) -> Iterator[GpuProgram]:
        for dtype in self.dtypes:
            for size in self.sizes:
                if not self.without & {size, f"{dtype.name} {size}"}:
                    yield GpuProgram(self, dtype, size)


@dataclass(frozen=True)
class GpuProgram:
    """One member of a family."""

    family: Family
    dtype: np.dtype[Any]
    size: str

    @property
    def name(self) -> str:
        return f"{self.family.name}-{self.dtype.name}-{self.size}"

    @property
    def tolerance(self) -> float:
        """Relative, by the bits of the type; 0 for integers."""
        if self.dtype.kind in "iub":
            return 0.0
        return max(self.family.tolerance, {"bfloat16": 2e-2, "float16": 2e-3, "float8_e4m3fn": 0.13}.get(self.dtype.name, 0.0))

    def inputs(self) -> list[Array]:
        return self.family.inputs(np.random.default_rng(len(self.name)), self.family.sizes[self.size], self.dtype)


LINES = {"aligned": (1 << 15,), "odd": (37,), "tail": (1030,), "one": (1,), "zero": (0,)}
GRIDS = {"aligned": (96, 320), "odd": (5, 37), "tail": (33, 70), "one": (1, 1), "zero": (0, 5)}
CUBES = {"aligned": (4, 8, 32), "odd": (3, 5, 7), "tail": (2, 33, 35), "one": (1, 1, 1), "zero": (3, 0, 4)}
ROWS = {"aligned": (9, 256), "odd": (3, 101), "tail": (2, 1540), "one": (1, 1), "zero": (0, 9), "long": (2, 9216), "short": (70, 10)}
SORTS = {"aligned": (16, 512), "odd": (5, 37), "tail": (33, 70), "one": (1, 1), "zero": (0, 5)}
COLUMNS = {"aligned": (300, 64), "odd": (37, 5), "tail": (1100, 70), "one": (1, 1), "zero": (0, 9), "few": (6, 2060)}


def arithmetic(x: Any) -> Any:
    return x * x - x, gd.maximum(x, x + x), gd.where(x > x * x, x, -x)


def logic(x: Any) -> Any:
    y = gd.logical_not(x)
    return gd.logical_and(x, y), gd.logical_or(x, y), gd.where(y, 3, 4)


def functions(x: Any) -> Any:
    y = gd.abs(x) + 0.5
    return gd.exp(x), gd.log(y), gd.sin(x), gd.tanh(x), gd.erf(x), gd.sqrt(y), gd.floor(x), gd.power(y, x)


def broadcast(x: Any, row: Any, column: Any) -> Any:
    return (x + row) * column, x * 2


def broadcast_inputs(random: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> list[Array]:
    rows, columns = shape
    return [values(random, s, dtype) for s in (shape, (columns,), (rows, 1))]


def stored(x: Any) -> Any:
    """Sums of what is stored in 8 bits."""
    return x.astype(np.float32) * 2.0, (x.astype(np.float32) + 1.0).astype(x.dtype)


def turned(x: Any) -> Any:
    return gd.transpose(x, (1, 0)), gd.flip(x, 1), x[:, ::2]


def permuted(x: Any) -> Any:
    return gd.transpose(x, (2, 0, 1)), gd.transpose(x, (1, 0, 2)), gd.transpose(x, (2, 1, 0)) * 2


def joined(x: Any) -> Any:
    return gd.concatenate([x, x * 2], 1), gd.pad(x, [(1, 2), (0, 3)])


def normalised(x: Any) -> Any:
    return gd.softmax(x, -1), gd.log_softmax(x, -1)


def layer_normalised(x: Any, g: Any, b: Any) -> Any:
    return gd.layer_norm(x, g, b, 1e-5)


def layer_norm_inputs(random: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> list[Array]:
    return [values(random, s, dtype) for s in (shape, shape[1:], shape[1:])]


def layer_norm_gradient(x: Any, g: Any, b: Any) -> Any:
    return gd.grad(lambda x, g, b: gd.sum(gd.tanh(gd.layer_norm(x, g, b, 1e-5))), (0, 1, 2))(x, g, b)


def row_reductions(x: Any) -> Any:
    return gd.sum(x, 1), gd.max(x, 1), gd.argmax(x, 1), gd.min(x * x, 1)


def row_sums(x: Any) -> Any:
    return gd.sum(x, 1), gd.sum(x * x, 1)


def column_reductions(x: Any) -> Any:
    return gd.sum(x, 0), gd.prod(x, 0)


def full_reductions(x: Any) -> Any:
    return gd.sum(x), gd.max(x), gd.min(x)


def full_sums(x: Any) -> Any:
    return gd.sum(x), gd.sum(x * x)


def looked_up(table: Any, places: Any) -> Any:
    return gd.take(table, places, 0)


def table_inputs(random: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> list[Array]:
    rows = max(1, shape[0])
    return [values(random, (rows, shape[1]), dtype), random.integers(0, rows, 2 * shape[0] + (shape[0] > 1)).astype(np.int32)]


def table_gradient(table: Any, places: Any) -> Any:
    return gd.grad(lambda table: gd.sum(gd.take(table, places, 0) ** 2))(table)


def accumulated(x: Any) -> Any:
    return gd.cumsum(x, -1), gd.cumsum(x, 0), gd.cummax(x, -1)


def ordered(x: Any) -> Any:
    return gd.sort(x, -1), gd.argsort(x, -1)


def best(x: Any) -> Any:
    return gd.top_k(x, min(3, x.shape[-1]))


def windows(x: Any) -> Any:
    return gd.max_pool(x, 2), gd.avg_pool(x, 3, 1)


def window_gradient(x: Any) -> Any:
    return gd.grad(lambda x: gd.sum(gd.max_pool(x, 2) ** 2))(x)


IMAGES = {"aligned": (2, 8, 8, 16), "odd": (1, 7, 9, 3), "tail": (2, 6, 11, 33), "one": (1, 3, 3, 1), "zero": (0, 6, 6, 3)}


def overlapping_gradient(x: Any) -> Any:
    return gd.grad(lambda x: gd.sum(gd.max_pool(x, 3, 2, [(0, 0), (0, 0)]) ** 2))(x)


def ordered_by(x: Any) -> Any:
    """Several operands, descending, every element kept with its partner; the fold from the other end."""
    keys, places = gd.sort_together([gd.floor(x * 2.0), x], 0)
    return keys, places, gd.flip(gd.cumsum(gd.flip(x, 1), 1), 1), gd.cumlogsumexp(x, 0)


def random_numbers(key: Any, x: Any) -> Any:
    return gd.random.uniform(key, x.shape), gd.random.normal(key, x.shape), x


def random_inputs(random: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> list[Array]:
    return [random.integers(0, 1 << 30, 2).astype(np.uint32), values(random, shape, dtype)]


FAMILIES: tuple[Family, ...] = (
    Family("arithmetic", arithmetic, LINES, NUMBERS),
    Family("logic", logic, LINES, (BOOL,)),
    Family("functions", functions, LINES, FLOATS),
    Family("broadcast", broadcast, GRIDS, (F32, BF16, F64, I32), broadcast_inputs),
    Family("stored", stored, LINES, (F8,)),
    Family("turned", turned, GRIDS, (F32, BF16, I8, F64)),
    Family("permuted", permuted, CUBES, (F32, F16)),
    Family("joined", joined, GRIDS, (F32, I64)),
    Family("softmax", normalised, ROWS, FLOATS, tolerance=1e-4),
    Family("layer norm", layer_normalised, ROWS, (F32, BF16), layer_norm_inputs, tolerance=1e-4),
    Family("layer norm gradient", layer_norm_gradient, {**COLUMNS, "tail": (260, 70)}, (F32,), layer_norm_inputs, tolerance=1e-3),
    Family("row reductions", row_reductions, ROWS, (F32, F64, I32)),
    Family("row sums", row_sums, ROWS, (BF16, F16, I64)),
    Family("column reductions", column_reductions, COLUMNS, (F32, BF16, F64, I32)),
    Family("full reductions", full_reductions, GRIDS, (F32, I32), without=frozenset({"zero"})),
    Family("full sums", full_sums, {**LINES, "long": (70000,)}, (F32, BF16, F64)),
    Family("gather", looked_up, GRIDS, (F32, BF16, I8), table_inputs),
    Family("scatter", table_gradient, SORTS, (F32, BF16, F64), table_inputs),
    Family("scan", accumulated, SORTS, (F32, F64, I32)),
    Family("sort", ordered, SORTS, (F32, BF16, I32)),
    Family("top k", best, ROWS, (F32,)),
    Family("windows", windows, IMAGES, (F32, BF16)),
    Family("window gradient", window_gradient, IMAGES, (F32,)),
    Family("overlapping windows' gradient", overlapping_gradient, IMAGES, (F32,)),
    Family("ordered by", ordered_by, SORTS, (F32, F16)),
    Family("random", random_numbers, {**LINES, "aligned": (4096,)}, (F32,), random_inputs),
    Family("product", made.product, made.PRODUCTS, (F32, BF16, F16, F64, I32), made.product_inputs, tolerance=1e-4),
    Family("turned products", made.turned_products, made.PRODUCTS, (BF16, F16, F32), made.turned_inputs, tolerance=1e-4),
    Family("wide product", made.wide_product, made.PRODUCTS, (I8,), made.product_inputs),
    Family("layer", made.layer, made.PRODUCTS, (BF16, F32), made.layer_inputs, tolerance=1e-4),
    Family("batched product", made.batched, made.PRODUCTS, (F16, F32), made.batched_inputs, tolerance=1e-4),
    Family("deep product", made.deep_product, made.PRODUCTS, (BF16, F32), made.deep_inputs, tolerance=1e-4),
    Family("convolution", made.convolution, made.PICTURES, (BF16, F32), made.convolution_inputs, tolerance=1e-4),
    Family("convolution gradient", made.convolution_gradient, made.PICTURES, (F16, F32), made.convolution_inputs, tolerance=1e-3),
    Family("depthwise convolution", made.depthwise, made.PICTURES, (F32, BF16), made.depthwise_inputs, tolerance=1e-4),
    Family("attention", made.attention, made.HEADS, (BF16, F16, F32), made.attention_inputs, tolerance=1e-4),
    Family("causal attention", made.causal_attention, made.HEADS, (F16, BF16, F32), made.causal_inputs, tolerance=1e-4),
)
"""Rows of other kernel families are added at the end."""


def programs(families: Sequence[Family] = FAMILIES) -> list[GpuProgram]:
    """All members."""
    return [program for family in families for program in family.members()]


def sample(families: Sequence[Family] = FAMILIES) -> list[GpuProgram]:
    """Two members of each family, and one of each size class and type that none of those has."""
    found: list[GpuProgram] = []
    for number, family in enumerate(families):
        members = list(family.members())
        first = next(m for m in members if m.size == "tail")
        found.append(first)
        others = [m for m in members if m.dtype != first.dtype] or members
        found.append(others[number * 7 % len(others)])
    everything = [m for family in families for m in family.members()]
    for field in ("size", "dtype"):
        seen = {getattr(m, field) for m in found}
        missing = {getattr(m, field): m for m in reversed(everything) if getattr(m, field) not in seen}
        found += missing.values()
    return list(dict.fromkeys(found))
