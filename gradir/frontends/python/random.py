"""Random numbers, `gradir.random`: the functions of `jax.random` with its default generator, bit for bit.

A key is a `uint32[2]` array. Nothing is drawn from a state: equal keys give equal numbers, and `split` makes new keys. Bits and uniforms
are the same on every target; distributions made from them by transcendental functions agree with JAX within their accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradir.dialects import nd
from gradir.dialects.nd.random import KEY
from gradir.dialects.types import element_type, tensor
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.bits import bitcast_convert, nextafter
from gradir.frontends.python.creation import arange, full, iota
from gradir.frontends.python.elementwise import (
    clip,
    erf,
    less,
    less_equal,
    log,
    log1p,
    logical_and,
    logical_not,
    maximum,
    mod,
    multiply,
    negative,
    right_shift,
    where,
)
from gradir.frontends.python.indexing import take
from gradir.frontends.python.mathematics import erf_inv
from gradir.frontends.python.operands import as_array, astype, broadcast_shapes, broadcast_to, one_axis, supported_dtype
from gradir.frontends.python.reduction import argmax
from gradir.frontends.python.shape import reshape, stack
from gradir.frontends.python.sizes import size
from gradir.frontends.python.sorting import sort_together
from gradir.frontends.python.special import fma
from gradir.frontends.python.trace import apply, apply_several, user_error

Shape = int | Sequence[int]
_MANTISSA = {np.dtype(np.float64): 52, np.dtype(np.float32): 23, np.dtype(np.float16): 10, promotion.BFLOAT16: 7}
_TINY = {np.dtype(np.float64): 2.0**-1022, np.dtype(np.float32): 2.0**-126, np.dtype(np.float16): 2.0**-14, promotion.BFLOAT16: 2.0**-126}


def key(seed: Any) -> Array:
    """A key from an integer: Python's and 32-bit ones give (0, seed mod 2^32), 64-bit arrays (high word, low word)"""
    if isinstance(seed, int) and not isinstance(seed, bool):
        return as_array(np.array([0, seed & 0xFFFFFFFF], np.uint32))
    value = as_array(seed)
    if value.ndim or value.dtype.kind not in "iu":
        raise _refused("key", "a rank-0 integer", str(value.type))
    high = astype(right_shift(astype(value, np.uint64), np.uint64(32)), np.uint32) if value.dtype.itemsize == 8 else _zero()
    return stack([high, astype(value, np.uint32)])


def _zero() -> Array:
    return as_array(np.uint32(0))


def _refused(name: str, expected: str, found: str) -> Exception:
    return user_error(f"random.{name}: bad argument", code="GR116", op=f"gradir.random.{name}", expected=expected, found=found)


def _key(name: str, given: Any) -> Array:
    found = as_array(given)
    if found.type != KEY:
        raise _refused(name, "a key: an array uint32[2] from gradir.random.key or split", str(found.type))
    return found


def _shape(name: str, shape: Any) -> tuple[int, ...]:
    sizes = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    return tuple(size(f"a size of random.{name}", n, 0) for n in sizes)


def _float(name: str, dtype: Any) -> np.dtype[Any]:
    found = supported_dtype(dtype)
    if found not in _MANTISSA:
        raise _refused(name, "a floating-point dtype", str(found))
    return found


def split(key: Any, num: Shape = 2) -> Array:
    """`num` new keys (an integer or a shape): uint32[num.., 2]"""
    shape = _shape("split", num)
    given = _key("split", key)
    count = math.prod(shape)
    low = reshape(iota((count,), 0, np.uint32), shape)
    return stack(_threefry(given, full(shape, 0, np.uint32), low), axis=-1)


def _threefry(key: Array, x: Array, y: Array) -> list[Array]:
    return apply_several(nd.Threefry2x32Op, [key, x, y], [x.type, y.type])


def fold_in(key: Any, data: Any) -> Array:
    """A new key from a key and an integer, for example the number of a step"""
    value = as_array(np.uint32(data & 0xFFFFFFFF) if isinstance(data, int) else data)
    if value.ndim or value.dtype.kind not in "iu":
        raise _refused("fold_in", "a rank-0 integer", str(value.type))
    return stack(_threefry(_key("fold_in", key), _zero(), astype(value, np.uint32)))


def bits(key: Any, shape: Shape = (), dtype: Any = np.uint32) -> Array:
    """Random bits, as uint8, uint16, uint32 or uint64"""
    kind = supported_dtype(dtype)
    if kind.kind != "u":
        raise _refused("bits", "uint8, uint16, uint32 or uint64", str(kind))
    return apply(nd.RandomBitsOp, [_key("bits", key)], tensor(element_type(kind), _shape("bits", shape)))


def uniform(key: Any, shape: Shape = (), dtype: Any = np.float32, minval: Any = 0.0, maxval: Any = 1.0) -> Array:
    """Numbers in [minval, maxval), all multiples of one step: the mantissa is random. Another range by one fma (f16, bf16: two ops)"""
    kind, sizes = _float("uniform", dtype), _shape("uniform", shape)
    low, high = (broadcast_to(as_array(v, kind), sizes) for v in (minval, maxval))
    width, mantissa = 8 * kind.itemsize, _MANTISSA[kind]
    drawn = 8 if mantissa < 8 else width
    word = np.dtype(f"uint{width}")
    raw = astype(bits(key, sizes, f"uint{drawn}"), word)
    one = int(np.array(1, kind).view(word))
    floats = bitcast_convert(right_shift(raw, word.type(drawn - mantissa)) | word.type(one), kind) - kind.type(1)
    span = high - low
    return maximum(low, fma(floats, span, low) if kind.itemsize >= 4 else floats * span + low)


def normal(key: Any, shape: Shape = (), dtype: Any = np.float32) -> Array:
    """Standard normal numbers: sqrt(2) erf_inv(u), u uniform in (-1, 1)"""
    kind = _float("normal", dtype)
    low = np.nextafter(np.array(-1, kind), np.array(0, kind), dtype=kind)
    drawn = uniform(key, shape, kind, low[()], 1.0)
    return multiply(erf_inv(drawn), np.array(math.sqrt(2), kind)[()])


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Shape | None = None, dtype: Any = np.float32) -> Array:
    """Normal numbers between `lower` and `upper`, neither of which occurs"""
    kind = _float("truncated_normal", dtype)
    bounds = [as_array(bound, kind) for bound in (lower, upper)]
    sizes = broadcast_shapes("random.truncated_normal", *(b.shape for b in bounds)) if shape is None else _shape("truncated_normal", shape)
    root = np.array(math.sqrt(2), kind)[()]
    drawn = uniform(key, sizes, kind, *(erf(bound / root) for bound in bounds))
    inside = (nextafter(bounds[0], np.array(np.inf, kind)), nextafter(bounds[1], np.array(-np.inf, kind)))
    return clip(root * erf_inv(drawn), *(broadcast_to(bound, sizes) for bound in inside))


def bernoulli(key: Any, p: Any = 0.5, shape: Shape | None = None) -> Array:
    """True with probability `p`"""
    chance = as_array(p)
    sizes = chance.shape if shape is None else _shape("bernoulli", shape)
    kind = _float("bernoulli", chance.dtype)
    return less(uniform(key, sizes, kind), broadcast_to(chance, sizes))


def exponential(key: Any, shape: Shape = (), dtype: Any = np.float32) -> Array:
    """Exponentially distributed numbers of mean 1: -log1p(-u)"""
    return negative(log1p(negative(uniform(key, shape, _float("exponential", dtype)))))


def gumbel(key: Any, shape: Shape = (), dtype: Any = np.float32) -> Array:
    """Gumbel distributed numbers: -log(-log u)"""
    kind = _float("gumbel", dtype)
    return negative(log(negative(log(uniform(key, shape, kind, _TINY[kind], 1.0)))))


def categorical(key: Any, logits: Any, axis: int = -1, shape: Shape | None = None) -> Array:
    """Indices along `axis` with probabilities softmax(logits): the argmax of logits plus Gumbel noise. `shape` may add leading dims"""
    x = as_array(logits)
    kind = _float("categorical", x.dtype)
    dim = one_axis(x, axis)
    batch = tuple(n for d, n in enumerate(x.shape) if d != dim)
    sizes = batch if shape is None else _shape("categorical", shape)
    lead = len(sizes) - len(batch)
    if lead < 0 or sizes[lead:] != batch:
        raise _refused("categorical", f"a shape that ends in {batch}", str(sizes))
    whole_shape = (*sizes[: lead + dim], x.shape[dim], *sizes[lead + dim :])
    return argmax(gumbel(key, whole_shape, kind) + broadcast_to(x, whole_shape), axis=lead + dim)


def randint(key: Any, shape: Shape, minval: Any, maxval: Any, dtype: Any = np.int32) -> Array:
    """Integers in [minval, maxval), from two words each; minval where the range is empty. Numbers, or arrays that broadcast to `shape`"""
    kind, sizes = supported_dtype(dtype), _shape("randint", shape)
    if kind.kind not in "iu":
        raise _refused("randint", "an integer dtype", str(kind))
    limits = np.iinfo(kind)
    (low, _), (top, beyond) = _bounded(minval, kind), _bounded(maxval, kind)
    low, top, beyond = (broadcast_to(bound, sizes) for bound in (low, top, beyond))
    word = np.dtype(f"uint{limits.bits}")
    keys = split(key)
    higher, lower = (bits(keys[k], sizes, word) for k in range(2))
    one = word.type(1)
    nothing = less_equal(top, low)
    span = where(nothing, one, astype(top - low, word))
    span = where(logical_and(beyond, logical_not(nothing)), span + one, span)
    multiplier = mod(as_array(word.type(1 << (limits.bits // 2))), span)
    multiplier = mod(multiplier * multiplier, span)
    offset = mod(mod(higher, span) * multiplier + mod(lower, span), span)
    return low + astype(offset, kind)


def _bounded(value: Any, kind: np.dtype[Any]) -> tuple[Array, Array]:
    """A bound clipped to the integer type, and whether it lies above."""
    limits = np.iinfo(kind)
    if isinstance(value, int):
        return as_array(kind.type(min(max(value, limits.min), limits.max))), as_array(value > limits.max)
    given = as_array(value)
    if given.dtype.kind not in "iu":
        raise _refused("randint", "integer bounds", str(given.type))
    source = np.iinfo(given.dtype)
    above = given > source.dtype.type(min(limits.max, source.max))
    inside = clip(given, source.dtype.type(max(limits.min, source.min)), source.dtype.type(min(limits.max, source.max)))
    return astype(inside, kind), above


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Array:
    """`arange(x)`, or the slices of the array `x` along `axis`, in random order; `independent`: each row has an order of its own"""
    if isinstance(x, int):
        return _shuffle(_key("permutation", key), arange(x), 0)
    array = as_array(x)
    dim = one_axis(array, axis)
    if independent or array.ndim == 1:
        return _shuffle(_key("permutation", key), array, dim)
    order = _shuffle(_key("permutation", key), arange(array.shape[dim]), 0)
    return take(array, order, axis=dim)


def _shuffle(key: Array, x: Array, dim: int) -> Array:
    """Sorted by random words, several times where words are likely to collide (see tensorflow/compiler/tf2xla/kernels/random_ops.cc)."""
    size = math.prod(x.shape)
    for _ in range(math.ceil(3 * math.log(max(1, size)) / math.log(0xFFFFFFFF))):
        keys = split(key)
        key = keys[0]
        _, x = sort_together([bits(keys[1], x.shape), x], axis=dim)
    return x


def dropout(key: Any, x: Any, rate: float, deterministic: bool = False) -> Array:
    """`x / (1 - rate)` where kept, which is with probability `1 - rate`, else 0; x itself if `deterministic` or rate = 0"""
    value = as_array(x)
    if not 0 <= rate <= 1:
        raise _refused("dropout", "a rate in 0 .. 1", str(rate))
    if deterministic or rate == 0:
        return value
    if rate == 1:
        return full(value.shape, 0, value.dtype)
    kept = bernoulli(key, np.float32(1 - rate), value.shape)
    return where(kept, value / (1 - rate), full(value.shape, 0, value.dtype))


__all__ = [
    "bernoulli", "bits", "categorical", "dropout", "exponential", "fold_in", "gumbel", "key", "normal", "permutation", "randint", "split",
    "truncated_normal", "uniform",
]  # fmt: skip
