"""Random programs over odd shapes and element types: every step is a public function of the frontend.

A program is grown by running it: under `gradir.eager()` each step's value is known, and steps that overflow the bounds of a fair comparison are
left out. `exact` values (inputs, integers, moved data) may be compared, floored and ordered; a rounded value may not, because two correct
compilers may differ there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import gradir as gd
from gradir.errors import GradirError

SIZES = (0, 1, 2, 3, 5, 7, 8, 17, 33)
LARGE = (1, 2, 33, 127, 300, 400)
"""Sizes that make kernels large enough for several threads."""

DTYPES: dict[str, Any] = {
    "f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "bool": np.bool_, "bf16": ml_dtypes.bfloat16, "f16": np.float16,
    "i8": np.int8, "u8": np.uint8,
}  # fmt: skip
TOLERANCES = {"float64": 1e-10, "float32": 2e-4, "float16": 2e-2, "bfloat16": 1.2e-1}
LARGEST = 300_000
"""Elements of a value at most: programs run op by op too."""

BOUND = 200.0
"""No step may give a larger number: it keeps rounding errors within `TOLERANCES`."""

Function = Callable[..., Any]


@dataclass(frozen=True)
class Value:
    """A value of the program: the type of `sample`, and whether its bits are fixed."""

    sample: np.ndarray[Any, Any]
    exact: bool

    @property
    def floating(self) -> bool:
        return self.sample.dtype.name in TOLERANCES

    @property
    def shape(self) -> tuple[int, ...]:
        return self.sample.shape


@dataclass(frozen=True)
class Step:
    """One more value: `function` of the values at `operands`."""

    name: str
    function: Function
    operands: tuple[int, ...]


@dataclass
class Program:
    """Call it with `inputs`; `results` are the values it returns."""

    seed: int
    inputs: list[np.ndarray[Any, Any]]
    steps: list[Step] = field(default_factory=list)
    results: tuple[int, ...] = ()
    values: list[Value] = field(default_factory=list)

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        values = list(inputs)
        for step in self.steps:
            values.append(step.function(*(values[k] for k in step.operands)))
        return tuple(values[k] for k in self.results)

    def loss(self, *inputs: Any) -> Any:
        """A scalar that depends on every floating-point result."""
        total: Any = np.float32(0)
        for x in self.run(*inputs):
            if np.dtype(x.dtype).name in TOLERANCES and x.size:
                wide = np.promote_types(np.float32, x.dtype)
                total = total + gd.mean(gd.tanh(x.astype(wide) * 0.25))
        return total

    @property
    def tolerance(self) -> float:
        """Relative to the largest element: that of the narrowest type that a value went through."""
        return max((TOLERANCES[v.sample.dtype.name] for v in self.values if v.floating), default=0.0)

    @property
    def differentiable(self) -> tuple[int, ...]:
        return tuple(k for k, x in enumerate(self.inputs) if x.dtype.name in TOLERANCES)

    def __str__(self) -> str:
        lines = [f"seed {self.seed}"]
        lines += [f"  v{k} = input {x.dtype}{list(x.shape)}" for k, x in enumerate(self.inputs)]
        first = len(self.inputs)
        for k, step in enumerate(self.steps):
            value = self.values[first + k]
            lines.append(
                f"  v{first + k} = {step.name}({', '.join(f'v{o}' for o in step.operands)}) : {value.sample.dtype}{list(value.shape)}"
            )
        return "\n".join([*lines, f"  return {', '.join(f'v{k}' for k in self.results)}"])


def program(seed: int, steps: int, sizes: Sequence[int] = SIZES) -> Program:
    """The program with that seed: up to `steps` steps, one to four results, the last value among them."""
    rng = np.random.default_rng(seed)
    made = Program(seed, [_input(rng, sizes) for _ in range(int(rng.integers(1, 4)))])
    made.values = [Value(x, True) for x in made.inputs]
    with gd.eager():
        for _ in range(4 * steps):
            if len(made.steps) < steps:
                _grow(rng, made)
    count = len(made.values)
    chosen = {count - 1, *(int(rng.integers(0, count)) for _ in range(int(rng.integers(0, 4))))}
    made.results = tuple(sorted(chosen))
    return made


def _input(rng: np.random.Generator, sizes: Sequence[int]) -> np.ndarray[Any, Any]:
    weights = np.array([6, 3, 2, 1, 1, 2, 2, 1, 1], float)
    dtype = np.dtype(list(DTYPES.values())[int(rng.choice(len(DTYPES), p=weights / weights.sum()))])
    rank = int(rng.choice(5, p=[0.1, 0.25, 0.35, 0.2, 0.1]))
    shape = tuple(int(rng.choice(sizes)) for _ in range(rank))
    while np.prod(shape, dtype=np.int64) > 200_000:
        shape = tuple(max(1, n // 2) for n in shape)
    if dtype == np.bool_:
        return np.asarray(rng.integers(0, 2, shape)).astype(dtype)
    if dtype.kind in "iu":
        return np.asarray(rng.integers(0 if dtype.kind == "u" else -9, 10, shape)).astype(dtype)
    return np.asarray(rng.uniform(-3, 3, shape)).astype(dtype)


def _grow(rng: np.random.Generator, made: Program) -> None:
    """One more step, if the drawn one fits."""
    makers = [
        _unary,
        _unary,
        _binary,
        _binary,
        _binary,
        _reduce,
        _shape,
        _shape,
        _index,
        _contract,
        _convert,
        _window,
        _control,
        _composite,
    ]
    drawn = makers[int(rng.integers(len(makers)))](rng, made)
    if drawn is None:
        return
    name, function, operands, exact = drawn
    try:
        result = np.asarray(function(*(gd.asarray(made.values[k].sample) for k in operands)))
    except GradirError:
        return
    value = Value(result, exact or result.dtype.name not in TOLERANCES)
    if result.size > LARGEST or (
        value.floating and result.size and not np.nanmax(np.abs(np.asarray(result, np.float64)), initial=0) < BOUND
    ):
        return
    made.steps.append(Step(name, function, operands))
    made.values.append(value)


Drawn = tuple[str, Function, tuple[int, ...], bool] | None
"""Name, function, operands, and whether the result's bits are fixed (floating results only)."""


def _pick(rng: np.random.Generator, made: Program, accept: Callable[[Value], bool] = lambda v: True) -> int | None:
    """A value that is accepted, recent ones more often."""
    fitting = [k for k, v in enumerate(made.values) if accept(v)]
    if not fitting:
        return None
    return fitting[-1 - min(int(rng.integers(len(fitting))) for _ in range(2))]


def _one_of(rng: np.random.Generator, rows: Sequence[Any]) -> Any:
    return rows[int(rng.integers(len(rows)))]


def _unary(rng: np.random.Generator, made: Program) -> Drawn:
    k = _pick(rng, made)
    assert k is not None
    v = made.values[k]
    if not v.floating:
        name = _one_of(rng, ["negative", "abs", "sign", "invert", "relu"])
        if v.sample.dtype == np.bool_:
            name = "invert"
        return name, getattr(gd, name), (k,), True
    if v.exact and rng.random() < 0.5:  # functions with poles, kinks and steps: on values that both sides know exactly
        name = _one_of(rng, ["relu", "negative", "abs", "sign", "floor", "ceil", "isfinite", "isnan", "stop_gradient"])
        return name, getattr(gd, name), (k,), True
    smooth: list[tuple[str, Function]] = [
        ("tanh", gd.tanh), ("sin", gd.sin), ("cos", gd.cos), ("sigmoid", gd.sigmoid), ("erf", gd.erf), ("gelu", gd.gelu), ("softplus", gd.softplus),
        ("silu", gd.silu), ("negative", gd.negative), ("abs", gd.abs), ("square", gd.square), ("x+1", lambda x: x + 1), ("2*x", lambda x: 2 * x),
        ("exp(-|x|)", lambda x: gd.exp(-gd.abs(x))), ("log1p(|x|)", lambda x: gd.log1p(gd.abs(x))), ("sqrt(1+x*x)", lambda x: gd.sqrt(1 + x * x)),
        ("rsqrt(1+|x|)", lambda x: gd.rsqrt(1 + gd.abs(x))), ("expm1(tanh)", lambda x: gd.expm1(gd.tanh(x))), ("x**3", lambda x: gd.tanh(x) ** 3),
        ("gelu exact", lambda x: gd.gelu(x, approximate=False)),
    ]  # fmt: skip
    name, function = _one_of(rng, smooth)
    return name, function, (k,), False


def _fits(a: Value, b: Value) -> bool:
    """Whether the shapes broadcast, to an array of at most `LARGEST` elements."""
    try:
        return math.prod(np.broadcast_shapes(a.shape, b.shape)) <= LARGEST
    except ValueError:
        return False


def _binary(rng: np.random.Generator, made: Program) -> Drawn:
    a = _pick(rng, made)
    assert a is not None
    b = _pick(rng, made, lambda v: _fits(made.values[a], v))
    assert b is not None
    x, y = made.values[a], made.values[b]
    boolean = x.sample.dtype == np.bool_ and y.sample.dtype == np.bool_
    if not (x.floating or y.floating):
        name = _one_of(rng, ["bitwise_and", "bitwise_or", "bitwise_xor", "add", "multiply", "maximum", "minimum", "equal", "less_equal"])
        if not boolean and rng.random() < 0.5:
            name = _one_of(rng, ["subtract", "floor_divide", "mod", "fmod", "left_shift", "right_shift", "power", "divide"])
        return name, getattr(gd, name), (a, b), name != "divide"
    if x.exact and y.exact and rng.random() < 0.5:
        name = _one_of(rng, ["maximum", "minimum", "less", "greater_equal", "equal", "not_equal", "fmod", "arctan2", "where"])
        if name == "where":
            return "where(x<y)", lambda x, y: gd.where(x < y, x, y), (a, b), True
        return name, getattr(gd, name), (a, b), name not in ("arctan2",)
    smooth: list[tuple[str, Function]] = [
        ("add", gd.add), ("subtract", gd.subtract), ("multiply", gd.multiply), ("x/(1+y*y)", lambda x, y: x / (1 + gd.square(y))),
        ("x*tanh(y)", lambda x, y: x * gd.tanh(y)), ("clip", lambda x, y: gd.clip(x, -1.25, 1.5) + y), ("pow", lambda x, y: (1 + gd.abs(x)) ** gd.tanh(y)),
        ("maximum", gd.maximum), ("x*x-y", lambda x, y: x * x - y),
    ]  # fmt: skip
    name, function = _one_of(rng, smooth)
    return name, function, (a, b), False


def _axes(rng: np.random.Generator, v: Value) -> Any:
    rank = len(v.shape)
    if rank == 0 or rng.random() < 0.2:
        return None
    if rng.random() < 0.6:
        return int(rng.integers(-rank, rank))
    return tuple(sorted(int(k) for k in rng.permutation(rank)[: int(rng.integers(1, rank + 1))]))


def _reduce(rng: np.random.Generator, made: Program) -> Drawn:
    k = _pick(rng, made)
    assert k is not None
    v, keep = made.values[k], bool(rng.integers(0, 2))
    axis = _axes(rng, v)
    names = ["sum", "mean", "max", "min"] if v.floating else ["sum", "prod", "max", "min", "any", "all", "mean"]
    if v.floating:
        names += ["std", "prod", "var"]
    if v.exact:
        names += ["argmax", "argmin"]
    name = _one_of(rng, names)
    if name in ("argmax", "argmin"):
        single = axis[0] if isinstance(axis, tuple) else axis
        return f"{name} {single}", lambda x: getattr(gd, name)(x, single), (k,), True
    exact = v.exact and name in ("max", "min", "any", "all")
    if name == "std":
        return f"std {axis}", lambda x: gd.sqrt(gd.var(x, axis, keep) + 1), (k,), False
    if name == "prod" and v.floating:
        return f"prod {axis}", lambda x: gd.prod(gd.sin(x) * 1.25, axis, keep), (k,), False
    return f"{name} {axis} {keep}", lambda x: getattr(gd, name)(x, axis, keep), (k,), exact


def _shape(rng: np.random.Generator, made: Program) -> Drawn:
    k = _pick(rng, made)
    assert k is not None
    v = made.values[k]
    rank, exact = len(v.shape), v.exact
    kind = int(rng.integers(9))
    if kind == 0:
        perm = tuple(int(i) for i in rng.permutation(rank))
        return f"transpose {perm}", lambda x: gd.transpose(x, perm), (k,), exact
    if kind == 1:
        sizes = (-1,) if rng.random() < 0.5 or rank == 0 or 0 in v.shape else (v.shape[-1], -1)
        return f"reshape {sizes}", lambda x: gd.reshape(x, sizes), (k,), exact
    if kind == 2:
        at = int(rng.integers(0, rank + 1))
        return f"expand_dims {at}", lambda x: gd.expand_dims(x, at), (k,), exact
    if kind == 3:
        shape = (int(_one_of(rng, [1, 2, 3])), *v.shape)
        return f"broadcast {shape}", lambda x: gd.broadcast(x, shape), (k,), exact
    if rank == 0:
        return None
    axis = int(rng.integers(rank))
    if kind == 4:
        return f"flip {axis}", lambda x: gd.flip(x, axis), (k,), exact
    if kind == 5:
        other = _pick(rng, made, lambda w: w.sample.dtype == v.sample.dtype and len(w.shape) == rank and _same_but(v.shape, w.shape, axis))
        assert other is not None
        return f"concatenate {axis}", lambda x, y: gd.concatenate([x, y], axis), (k, other), exact and made.values[other].exact
    if kind == 6:
        widths = [(int(rng.integers(0, 3)), int(rng.integers(0, 3))) for _ in range(rank)]
        fill = 1 if v.sample.dtype != np.bool_ else True
        return f"pad {widths}", lambda x: gd.pad(x, widths, fill), (k,), exact
    if kind == 7:
        return "stack", lambda x: gd.stack([x, x], axis), (k,), exact
    return "mT", lambda x: gd.swapaxes(x, axis, -1), (k,), exact


def _same_but(a: tuple[int, ...], b: tuple[int, ...], axis: int) -> bool:
    return all(m == n for i, (m, n) in enumerate(zip(a, b)) if i != axis)


def _index(rng: np.random.Generator, made: Program) -> Drawn:
    k = _pick(rng, made, lambda v: len(v.shape) > 0)
    if k is None:
        return None
    v = made.values[k]
    rank, exact = len(v.shape), v.exact
    kind = int(rng.integers(6))
    if kind <= 1:
        items = tuple(_item(rng, n) for n in v.shape[: int(rng.integers(1, rank + 1))])
        return f"x{list(items)}", lambda x: x[items], (k,), exact
    axis = int(rng.integers(rank))
    if 0 in v.shape:
        return None
    if kind == 2:
        at = rng.integers(-v.shape[axis], v.shape[axis], tuple(int(_one_of(rng, [1, 3, 4])) for _ in range(int(rng.integers(1, 3)))))
        return f"take {at.shape} axis {axis}", lambda x: gd.take(x, at.astype(np.int32), axis), (k,), exact
    index = _pick(rng, made, lambda w: w.shape == () and w.sample.dtype.kind in "iu" and w.sample.dtype.itemsize >= 4)
    if index is None:
        at32 = np.int32(rng.integers(-3, 9))
        starts: Any = lambda x: [at32 if d == axis else 0 for d in range(rank)]
        sizes = tuple(max(1, n - 1) if d == axis else n for d, n in enumerate(v.shape))
        return f"dynamic_slice {at32} axis {axis}", lambda x: gd.dynamic_slice(x, starts(x), sizes), (k,), exact
    if kind == 3:
        return "x[i]", lambda x, i: x[i], (k, index), exact
    if kind == 4:
        return "x.at[i].set", lambda x, i: x.at[i].set(x[0]), (k, index), exact
    return "scatter_add", lambda x: gd.scatter_add(x, np.array([0, 0, 1]), gd.broadcast(x[0], (3, *v.shape[1:]))), (k,), False


def _item(rng: np.random.Generator, n: int) -> Any:
    if n and rng.random() < 0.3:
        return int(rng.integers(-n, n))
    start, stop = (None if rng.random() < 0.4 else int(rng.integers(-n - 1, n + 2)) for _ in range(2))
    return slice(start, stop, _one_of(rng, [None, None, 1, 2, 3, -1, -2]))


def _contract(rng: np.random.Generator, made: Program) -> Drawn:
    a = _pick(rng, made, lambda v: len(v.shape) > 0 and v.sample.dtype != np.bool_)
    if a is None:
        return None
    x = made.values[a]
    b = _pick(rng, made, lambda v: len(v.shape) > 0 and v.sample.dtype == x.sample.dtype and v.shape[-1] == x.shape[-1])
    assert b is not None
    y = made.values[b]
    cost = math.prod(x.shape) * math.prod(y.shape[:-1])
    if max(cost, math.prod(x.shape[:-1]) * math.prod(y.shape[:-1])) > 2_000_000:
        return None
    if len(y.shape) >= 2 and len(x.shape) <= 2:
        return (
            "x @ yT",
            lambda x, y: gd.matmul(gd.tanh(x), gd.swapaxes(gd.tanh(y), -1, -2)) if x.dtype.kind != "i" else x @ gd.swapaxes(y, -1, -2),
            (a, b),
            False,
        )
    return "tensordot", lambda x, y: gd.tensordot(x, y, ((x.ndim - 1,), (y.ndim - 1,))) / max(1, x.shape[-1]), (a, b), False


def _convert(rng: np.random.Generator, made: Program) -> Drawn:
    k = _pick(rng, made)
    assert k is not None
    v = made.values[k]
    names = [name for name in DTYPES if v.exact or name in ("f32", "f64", "f16", "bf16")]
    name = _one_of(rng, names)
    return f"astype {name}", lambda x: x.astype(DTYPES[name]), (k,), v.exact


def _window(rng: np.random.Generator, made: Program) -> Drawn:
    k = _pick(rng, made, lambda v: len(v.shape) in (3, 4) and 0 not in v.shape and v.floating and np.prod(v.shape) < 30_000)
    if k is None:
        return None
    v = made.values[k]
    rank = len(v.shape) - 2
    window, strides = (tuple(int(rng.integers(1, 4)) for _ in range(rank)) for _ in range(2))
    padding = _one_of(rng, ["SAME", "VALID", [(1, 1)] * rank])
    kind = int(rng.integers(3))
    if kind == 0:
        return (
            f"max_pool {window} {strides} {padding}",
            lambda x: gd.clip(gd.max_pool(x, window, strides, padding), -200, 200),
            (k,),
            v.exact,
        )
    if kind == 1:
        return f"avg_pool {window} {strides} {padding}", lambda x: gd.avg_pool(x, window, strides, padding), (k,), False
    shape = (*window, v.shape[-1], int(_one_of(rng, [1, 3, 8])))
    w = (rng.uniform(-1, 1, shape) / np.sqrt(np.prod(shape[:-1]))).astype(v.sample.dtype)
    return f"conv {shape} {strides} {padding}", lambda x: gd.conv(x, w, strides, padding), (k,), False


def _composite(rng: np.random.Generator, made: Program) -> Drawn:
    k = _pick(rng, made, lambda v: v.floating and len(v.shape) > 0 and v.shape[-1] > 0)
    if k is None:
        return None
    axis = int(rng.integers(-len(made.values[k].shape), 0))
    if made.values[k].shape[axis] == 0:
        return None
    rows: list[tuple[str, Function]] = [
        ("softmax", lambda x: gd.softmax(x, axis)),
        ("log_softmax", lambda x: gd.log_softmax(x, axis)),
        ("logsumexp", lambda x: gd.logsumexp(x, axis)),
        ("layer_norm", lambda x: gd.layer_norm(x, 1.5, 0.25, eps=0.5)),
    ]
    name, function = _one_of(rng, rows)
    return f"{name} {axis}", function, (k,), False


def _control(rng: np.random.Generator, made: Program) -> Drawn:
    k = _pick(rng, made, lambda v: v.floating)
    if k is None:
        return None
    v, trips = made.values[k], int(_one_of(rng, [0, 1, 2, 5]))
    kind = int(rng.integers(6))
    if kind == 0:
        return f"fori_loop {trips}", lambda x: gd.fori_loop(0, trips, lambda i, s: gd.sin(s) + 0.25 * x, x), (k,), False
    if kind == 1:
        flag = bool(rng.integers(0, 2))
        pred = np.asarray(flag)
        return f"cond {flag}", lambda x: gd.cond(gd.asarray(pred), lambda s: gd.tanh(s) * 2, lambda s: s + s * s * 0.125, x), (k,), False
    if kind == 2 and v.shape and v.shape[0] > 0:
        return "scan", lambda x: gd.scan(lambda c, row: (gd.tanh(c + row), c * 0.5), x[0], x)[1], (k,), False
    if kind == 3 and v.shape and v.shape[0] > 0:
        return "scan carry", lambda x: gd.scan(lambda c, row: (gd.tanh(c * row + 0.5), gd.sum(row)), x[0] * 0, x)[0], (k,), False
    if kind == 4:
        count = _pick(rng, made, lambda w: w.shape == () and w.sample.dtype.kind == "i" and w.sample.dtype.itemsize >= 4 and w.sample < 20)
        if count is not None:
            return "fori_loop n", lambda x, n: gd.fori_loop(0, n, lambda i, s: gd.cos(s + i.astype(x.dtype)) * 0.75, x), (k, count), False
    if kind == 5 and v.shape:
        return (
            "swap loop",
            lambda x: gd.fori_loop(0, trips, lambda i, s: (s[1], gd.flip(s[0], 0) + s[1] * 0.5), (x, gd.tanh(x)))[0],
            (k,),
            False,
        )
    state = np.int32(trips)

    def loop(x: Any) -> Any:
        return gd.while_loop(lambda s: s[0] > 0, lambda s: (s[0] - 1, gd.tanh(s[1]) + 0.5), (gd.asarray(state), x))[1]

    return f"while {trips}", loop, (k,), False
