"""expand-math against numpy's long double: accuracy in ulp over the domain, special cases, every target's symbols.

Bounds are those of docs/numerics.md: 2 ulp for f32 exp, log, pow, tanh, erf, sin, cos; 4 ulp for f64 and the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import ml_dtypes
import numpy as np
import pytest

from gradir.dialects.target import CpuTargetAttr
from gradir.errors import GradirError
from gradir.ir.passes import PassContext
from gradir.lowering.expand_math import ExpandMath
from gradir.lowering.expand_math.expansion import NATIVE, expansions_for
from tests.targets.jit import Compiled, parse, undefined_symbols

N = 1 << 14
LONG = np.longdouble
BASELINE = CpuTargetAttr.of("x86-64", vector=4)
RNG = np.random.default_rng(7)
SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1.0,
    -1.0,
    0.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    1e-45,
    -1e-45,
    1e-38,
    88.72283,
    88.73,
    -103.9,
    3.4e38,
    1e300,
    -8.0,
    1 / 3,
]
DTYPES = {"f32": np.dtype("f4"), "f64": np.dtype("f8"), "f16": np.dtype("f2"), "bf16": np.dtype(ml_dtypes.bfloat16)}

pytestmark = [
    pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no extended precision to compare with"),
    pytest.mark.filterwarnings("ignore:.*encountered in cast:RuntimeWarning"),
]


@cache
def compiled(op: str, t: str, operands: int = 1, target: CpuTargetAttr | None = None, shape: str = "8") -> Compiled:
    """`@f(x..., out)` applies `op` to vectors; after the pass only native math is left, and no symbol is undefined."""
    arguments = ", ".join(f"%x{k}: memref<{N // 8}x8x{t}>" for k in range(operands))
    vector = f"vector<{shape}x{t}>"
    loads = "\n".join(f"    %a{k} = vector.load %x{k}[%i, %c0] : memref<{N // 8}x8x{t}>, {vector}" for k in range(operands))
    module = parse(f"""func.func @f({arguments}, %o: memref<{N // 8}x8x{t}>) {{
  %c0 = arith.constant 0 : index
  %step = arith.constant {shape.split("x")[0] if "x" in shape else 1} : index
  %n = arith.constant {N // 8} : index
  scf.for %i = %c0 to %n step %step {{
{loads}
    %r = {op} {", ".join(f"%a{k}" for k in range(operands))} : {vector}
    vector.store %r, %o[%i, %c0] : memref<{N // 8}x8x{t}>, {vector}
  }}
  return
}}""")
    if target is not None:
        module.attributes["gradir.target"] = target
    ExpandMath().apply(module, PassContext())
    left = {o.name for o in module.walk() if o.name.startswith("math.")}
    assert left <= NATIVE - set(expansions_for(target or CpuTargetAttr.of("znver3")))
    result = Compiled(module, target)
    assert undefined_symbols(result.object) <= {"memcpy", "memmove", "memset"}
    return result


def apply(op: str, t: str, *operands: np.ndarray, target: CpuTargetAttr | None = None, shape: str = "8") -> np.ndarray:
    padded = [np.resize(x.astype(DTYPES[t]), N) for x in operands]
    out = np.zeros(N, DTYPES[t])
    assert compiled(op, t, len(operands), target, shape)("f", *padded, out) == 0
    return out[: len(operands[0])]


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Distance in units of the last place of the rounded result; 0 for equal infinities and NaN, inf where only one is."""
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        spacing = np.spacing(np.abs(np.where(np.isfinite(rounded), rounded, 1))).astype(LONG)
        distance = np.abs(got.astype(LONG) - want) / np.maximum(spacing, LONG(np.finfo(got.dtype).smallest_subnormal))
    same = (np.isnan(got) & np.isnan(rounded)) | ((got == rounded) & ~np.isfinite(rounded))
    return np.where(same, 0, np.where(np.isnan(distance), np.inf, distance)).astype(float)


def check(got: np.ndarray, want: np.ndarray, bound: float, *inputs: np.ndarray) -> None:
    error = ulps(got, want)
    worst = int(np.argmax(error))
    assert error[worst] <= bound, f"{error[worst]:.2f} ulp at {[x[worst] for x in inputs]}: {got[worst]!r}, not {want[worst]!r}"
    numbers = ~np.isnan(got)
    with np.errstate(all="ignore"):
        wrong = np.signbit(got[numbers]) != np.signbit(want.astype(got.dtype)[numbers])
    assert not wrong.any(), [x[numbers][wrong][:1] for x in inputs]


def any_bits(t: str) -> np.ndarray:
    width = 32 if t == "f32" else 64
    return RNG.integers(0, 2**width, N, dtype=np.uint64).astype(f"u{width // 8}").view(DTYPES[t])


def inputs(t: str, low: float, high: float) -> list[np.ndarray]:
    dtype = DTYPES[t]
    with np.errstate(all="ignore"):
        small = (RNG.uniform(-1, 1, N) * 10.0 ** RNG.uniform(-10, 0, N)).astype(dtype)
        return [RNG.uniform(low, high, N).astype(dtype), any_bits(t), small, np.array(SPECIAL).astype(dtype)]


# op, reference, f32 domain, f64 domain, bounds for f32 and f64
UNARY: list[tuple[str, Callable[..., np.ndarray], tuple[float, float], tuple[float, float], float, float]] = [
    ("exp", np.exp, (-110, 95), (-760, 720), 1, 1),
    ("exp2", np.exp2, (-155, 130), (-1080, 1030), 1, 1),
    ("expm1", np.expm1, (-20, 90), (-40, 720), 2, 2),
    ("tanh", np.tanh, (-10, 10), (-23, 23), 2, 3),
    ("sinh", np.sinh, (-90, 90), (-712, 712), 4, 4),
    ("cosh", np.cosh, (-90, 90), (-712, 712), 4, 4),
    ("log", np.log, (0, 10), (0, 10), 1, 1),
    ("log2", np.log2, (0, 10), (0, 10), 2, 2),
    ("log10", np.log10, (0, 10), (0, 10), 2, 2),
    ("log1p", np.log1p, (-1, 3), (-1, 3), 2, 2),
    ("sin", np.sin, (-100, 100), (-100, 100), 2, 1),
    ("cos", np.cos, (-100, 100), (-100, 100), 2, 1),
    ("tan", np.tan, (-10, 10), (-10, 10), 4, 4),
    ("atan", np.arctan, (-5, 5), (-5, 5), 3, 3),
    ("asin", np.arcsin, (-1, 1), (-1, 1), 3, 3),
    ("acos", np.arccos, (-1, 1), (-1, 1), 3, 3),
    ("asinh", np.arcsinh, (-3, 3), (-3, 3), 3, 3),
    ("acosh", np.arccosh, (1, 9), (1, 9), 3, 3),
    ("atanh", np.arctanh, (-1, 1), (-1, 1), 3, 3),
    ("cbrt", np.cbrt, (-10, 10), (-10, 10), 1, 1),
    ("rsqrt", lambda x: 1 / np.sqrt(x), (0, 10), (0, 10), 2, 2),
]


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("row", UNARY, ids=lambda row: row[0])
def test_unary(row: tuple[str, Callable[..., np.ndarray], tuple[float, float], tuple[float, float], float, float], t: str) -> None:
    op, reference, short, long, bound32, bound64 = row
    for x in inputs(t, *(short if t == "f32" else long)):
        with np.errstate(all="ignore"):
            want = reference(x.astype(LONG))
        check(apply("math." + op, t, x), want, bound32 if t == "f32" else bound64, x)


@pytest.mark.parametrize("t", ["f32", "f64"])
def test_erf(t: str) -> None:
    for x in inputs(t, -7, 7):
        want = np.array([math.erf(v) for v in x.astype(float)])
        check(apply("math.erf", t, x), want.astype(LONG), 2 if t == "f32" else 3, x)  # over all f32 inputs: 1.73
    assert apply("math.erf", "f64", np.array([3e-12]))[0] == 3.3851375012865377e-12


@pytest.mark.parametrize("t", ["f32", "f64"])
def test_erfc(t: str) -> None:
    """The C library's f64 function has errors of 2 ulp itself."""
    for x in inputs(t, -7, 10.5 if t == "f32" else 27.5):
        want = np.array([math.erfc(v) for v in x.astype(float)])
        check(apply("math.erfc", t, x), want.astype(LONG), 4 if t == "f32" else 5, x)
    assert apply("math.erfc", "f32", np.array([10.0]))[0] > 0  # 2.09e-45, denormal


@pytest.mark.parametrize("t", ["f32", "f64"])
def test_pow(t: str) -> None:
    dtype, top = DTYPES[t], 90 if t == "f32" else 700
    x = np.exp(RNG.uniform(-top, top, N)).astype(dtype)
    y = (RNG.uniform(-top, top, N) / np.abs(np.log(x.astype(LONG)))).astype(dtype)
    near = (RNG.uniform(0.9, 1.1, N).astype(dtype), RNG.uniform(-900, 900, N).astype(dtype))
    with np.errstate(all="ignore"):
        grid = [g.ravel().astype(dtype) for g in np.meshgrid([*SPECIAL, 2.0**53 - 1, 2.0**53], [*SPECIAL, 2.0**53 - 1, 2.0**53])]
    for a, b in ((x, y), near, (any_bits(t), any_bits(t)), grid):
        with np.errstate(all="ignore"):
            want = np.power(a.astype(LONG), b.astype(LONG))
        check(apply("math.powf", t, a, b), want, 1 if t == "f32" else 2, a, b)


@pytest.mark.parametrize("t", ["f32", "f64"])
def test_atan2(t: str) -> None:
    dtype = DTYPES[t]
    with np.errstate(all="ignore"):
        grid = [g.ravel().astype(dtype) for g in np.meshgrid(SPECIAL, SPECIAL)]
    for y, x in ((RNG.uniform(-3, 3, N).astype(dtype), RNG.uniform(-3, 3, N).astype(dtype)), (any_bits(t), any_bits(t)), grid):
        check(apply("math.atan2", t, y, x), np.arctan2(y.astype(LONG), x.astype(LONG)), 4, y, x)


@pytest.mark.parametrize("target", [None, BASELINE], ids=["host", "sse2"])
@pytest.mark.parametrize("t", ["f32", "f64"])
def test_remainder_is_exact(t: str, target: CpuTargetAttr | None) -> None:
    dtype = DTYPES[t]
    with np.errstate(all="ignore"):
        grid = [g.ravel().astype(dtype) for g in np.meshgrid(SPECIAL, SPECIAL)]
        for x, y in ((RNG.uniform(-30, 30, N).astype(dtype), RNG.uniform(-3, 3, N).astype(dtype)), (any_bits(t), any_bits(t)), grid):
            check(apply("arith.remf", t, x, y, target=target), np.fmod(x, y).astype(LONG), 0, x, y)


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("op", ["floor", "ceil", "trunc", "roundeven", "round"])
def test_rounding_without_the_instruction(op: str, t: str) -> None:
    x = np.concatenate(
        [RNG.uniform(-5, 5, 1000), [0.49999997, -0.5, 0.5, 1.5, 2.5, -0.0, 2**23 + 0.5, 2**52 + 1], any_bits(t)[:1000]]
    ).astype(DTYPES[t])
    reference = {
        "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "roundeven": np.rint,
        "round": lambda v: np.copysign(np.floor(np.abs(v) + LONG(0.5)), v),
    }[op]  # fmt: skip
    with np.errstate(all="ignore"):
        check(apply("math." + op, t, x, target=BASELINE), reference(x.astype(LONG)), 0, x)


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("op", ["exp", "log", "tanh", "sin"])
def test_accuracy_without_fma(op: str, t: str) -> None:
    row = next(r for r in UNARY if r[0] == op)
    x = inputs(t, *row[2])[0]
    with np.errstate(all="ignore"):
        check(apply("math." + op, t, x, target=BASELINE), row[1](x.astype(LONG)), 2 if t == "f32" else 4, x)


def test_fma_without_the_instruction_rounds_once() -> None:
    a, b, c = (np.float32([1 + 2**-23, 3.0]) for _ in range(3))
    c = -(a.astype(float) * b.astype(float)).astype(np.float32)
    want = (a.astype(LONG) * b + c).astype(np.float32)
    assert (want != 0).any()
    np.testing.assert_array_equal(apply("math.fma", "f32", a, b, c, target=BASELINE), want)
    d = np.array([1 + 2.0**-52])
    assert apply("math.fma", "f64", d, d, -(d * d), target=BASELINE)[0] == 2.0**-104


@pytest.mark.parametrize("t", ["f16", "bf16"])
def test_sixteen_bit_floats_are_computed_in_f32(t: str) -> None:
    x = np.array([0.5, 1.0, 11.09, -3.0, 70000.0, np.nan]).astype(DTYPES[t])
    with np.errstate(all="ignore"):
        want = np.exp(x.astype(np.float64)).astype(np.float32).astype(DTYPES[t])
    np.testing.assert_array_equal(apply("math.exp", t, x).astype(float), want.astype(float))


@pytest.mark.parametrize("op", ["exp", "sin", "tanh"])
def test_vectors_of_rank_two(op: str) -> None:
    x = any_bits("f32")
    np.testing.assert_array_equal(apply("math." + op, "f32", x, shape="4x8"), apply("math." + op, "f32", x))


def test_scalars_and_integer_powers() -> None:
    module = parse("""func.func @f(%b: memref<64xi32>, %e: memref<64xi32>, %x: memref<64xf32>, %p: memref<64xi32>, %q: memref<64xf32>, %s: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 64 : index
  scf.for %i = %c0 to %n step %c1 {
    %bi = memref.load %b[%i] : memref<64xi32>
    %ei = memref.load %e[%i] : memref<64xi32>
    %xi = memref.load %x[%i] : memref<64xf32>
    %pi = math.ipowi %bi, %ei : i32
    memref.store %pi, %p[%i] : memref<64xi32>
    %qi = math.fpowi %xi, %ei : f32, i32
    memref.store %qi, %q[%i] : memref<64xf32>
    %si = math.sin %xi : f32
    memref.store %si, %s[%i] : memref<64xf32>
  }
  return
}""")
    ExpandMath().apply(module, PassContext())
    b = np.resize(np.array([2, -3, 0, 1, -1, 7, 10], np.int32), 64)
    e = np.resize(np.array([5, 0, 31, -1, -2, 3], np.int32), 64)
    x = np.resize(np.float32([1.5, -2.0, 1e20, -0.0]), 64)
    p, q, s = np.zeros(64, np.int32), np.zeros(64, np.float32), np.zeros(64, np.float32)
    assert Compiled(module)("f", b, e, x, p, q, s) == 0

    def power(base: int, exponent: int) -> int:
        if exponent < 0:
            return {1: 1, -1: 1 if exponent % 2 == 0 else -1}.get(base, 0)
        return (base**exponent + 2**31) % 2**32 - 2**31

    assert list(p) == [power(int(u), int(v)) for u, v in zip(b, e)]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(q, np.power(x.astype(LONG), e).astype(np.float32), rtol=2e-7)
        np.testing.assert_allclose(s, np.sin(x.astype(LONG)).astype(np.float32), rtol=2e-7)


def test_an_op_without_a_rule_is_an_error() -> None:
    module = parse(
        "func.func @f(%x: f32, %o: memref<f32>) {\n %r = math.clampf %x to [%x, %x] : f32\n memref.store %r, %o[] : memref<f32>\n return\n}"
    )
    with pytest.raises(GradirError, match=r"math\.clampf: no expansion") as caught:
        ExpandMath().apply(module, PassContext())
    assert caught.value.code == "OP040" and "math.exp" in caught.value.expected
