"""Row-wise and elementwise kernels: level 4 against level 3, both run by upstream; every form, odd and unknown sizes, accuracy of sums."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from gradir.dialects.upstream import memref, scf, vector
from tests.lowering.level3_kernels import KernelText, bias_gradient, layer_norm, loss, softmax, sum_body
from tests.lowering.upstream_kernels import Case, Compiled, check, lowered, needs_upstream

pytestmark = needs_upstream
RNG = np.random.default_rng(5)


def uniform(*shape: int) -> np.ndarray:
    return RNG.uniform(-2, 2, shape).astype(np.float32)


def garbage(*shape: int) -> np.ndarray:
    return np.full(shape, np.nan, np.float32)


def ops(module: ModuleOp, kind: type) -> int:
    return sum(isinstance(op, kind) for op in module.walk())


def softmax_case(m: int, n: int) -> Case:
    return (uniform(m, n), garbage(m, n)), (1,)


def norm_case(m: int, n: int) -> Case:
    return (uniform(m, n), uniform(n), uniform(n), np.float32(1 / max(n, 1)), np.float32(1e-5), garbage(m, n)), (5,)


def bias_case(m: int, n: int) -> Case:
    return (uniform(m, n), uniform(m, n), uniform(n), np.float32(0.1), garbage(m, n), garbage(n)), (4, 5)


def loss_case(m: int, n: int) -> Case:
    labels = RNG.integers(0, max(n, 1), m).astype(np.int32)
    return (uniform(m, n), labels, np.float32(1 / max(m, 1)), garbage(m, n), garbage(), garbage(n)), (3, 4, 5)


SIZES = [(1, 1), (3, 2), (2, 3), (4, 7), (5, 17), (2, 64), (3, 127), (2, 1500), (1, 2085), (0, 5)]


@pytest.mark.parametrize(
    ("write", "case"), [(softmax, softmax_case), (layer_norm, norm_case), (bias_gradient, bias_case), (loss, loss_case)]
)
def test_model_kernels_at_odd_sizes(write, case) -> None:
    kernels, cases = {}, {}
    for m, n in SIZES:
        name = f"k_{m}_{n}"
        kernels[name], cases[name] = write(name, m, n), [case(m, n)]
    check(kernels, cases, tolerance=3e-5)


def test_unknown_sizes() -> None:
    kernels = {
        "s_rows": softmax("s_rows", "?", 10), "s_columns": softmax("s_columns", 3, "?"), "s": softmax("s", "?", "?"),
        "n": layer_norm("n", "?", "?"), "b": bias_gradient("b", "?", "?"), "b_rows": bias_gradient("b_rows", "?", 37),
    }  # fmt: skip
    sizes = [(0, 4), (1, 1), (5, 9), (3, 70), (2, 1100)]
    cases = {
        "s_rows": [softmax_case(m, 10) for m, _ in sizes],
        "s_columns": [softmax_case(3, n) for _, n in sizes],
        "s": [softmax_case(*s) for s in sizes],
        "n": [norm_case(*s) for s in sizes],
        "b": [bias_case(*s) for s in sizes],
        "b_rows": [bias_case(m, 37) for m, _ in sizes],
    }
    check(kernels, cases, tolerance=3e-5)


def column_softmax(name: str, rows: int, columns: int) -> str:
    """Softmax down every column of x: the reduced dimension is not the one that lies side by side."""
    k = KernelText(name, "rows<>")
    k.arg("x", (rows, columns))
    k.arg("out", (rows, columns))
    k.constant("low", "0xFF800000")
    k.constant("zero", "0.0")
    k.temp("m", (columns,))
    k.fill("low", "m")
    k.generic("i, j", [("x", "i, j")], ("m", "j"), "%r = arith.maximumf %o, %a0 : f32", "i")
    k.temp("e", (rows, columns))
    k.generic("i, j", [("x", "i, j"), ("m", "j")], ("e", "i, j"), "%d = arith.subf %a0, %a1 : f32\n%r = math.exp %d : f32")
    k.temp("s", (columns,))
    k.fill("zero", "s")
    k.generic("i, j", [("e", "i, j")], ("s", "j"), sum_body(), "i")
    k.generic("i, j", [("e", "i, j"), ("s", "j")], ("out", "i, j"), "%r = arith.divf %a0, %a1 : f32")
    return k.done()


def centered_columns(name: str, rows: int, columns: int, schedule: str = "rows<>") -> str:
    """x less the sum of each of its columns: two sweeps, no function that is a polynomial."""
    k = KernelText(name, schedule)
    k.arg("x", (rows, columns))
    k.arg("out", (rows, columns))
    k.constant("zero", "0.0")
    k.temp("s", (columns,))
    k.fill("zero", "s")
    k.generic("i, j", [("x", "i, j")], ("s", "j"), sum_body(), "i")
    k.generic("i, j", [("x", "i, j"), ("s", "j")], ("out", "i, j"), "%r = arith.subf %a0, %a1 : f32")
    return k.done()


def reduction(
    name: str, shape: tuple[int, ...], dims: str, kept: str, reduced: str, combiner: str, start: str, element: str = "f32"
) -> str:
    sizes = dict(zip(dims.split(", "), shape))
    k = KernelText(name, "rows<>")
    k.arg("x", shape, element)
    k.arg("out", [sizes[d] for d in kept.split(", ") if d], element)
    k.constant("start", start, element)
    k.fill("start", "out")
    k.generic(dims, [("x", dims)], ("out", kept), f"%r = arith.{combiner} %o, %a0 : {element}", reduced)
    return k.done()


def test_lanes_may_be_rows() -> None:
    kernels = {f"c_{m}_{n}": column_softmax(f"c_{m}_{n}", m, n) for m, n in ((3, 8), (17, 21), (40, 5), (2, 1))}
    cases = {name: [softmax_case(*map(int, name.split("_")[1:]))] for name in kernels}
    module = check(kernels, cases, tolerance=3e-5)
    assert ops(module, vector.LoadOp) > 0


def test_strips_of_rows_side_by_side() -> None:
    """Four registers of rows, then what is left in powers of two; on threads, blocks of whole lines."""
    sizes = ((3, 32), (17, 75), (5, 33), (40, 20), (4, 64), (2, 128), (9, 5))
    kernels = {f"c_{m}_{n}": centered_columns(f"c_{m}_{n}", m, n) for m, n in sizes}
    kernels |= {f"p_{m}_{n}": centered_columns(f"p_{m}_{n}", m, n, "rows<parallel = [1]>") for m, n in sizes}
    cases = {name: [softmax_case(*map(int, name.split("_")[1:]))] for name in kernels}
    module = check(kernels, cases, tolerance=3e-5)
    loads = {op.results[0].type.get_shape()[0] for op in module.walk() if isinstance(op, vector.LoadOp)}
    assert {32, 16, 8} <= loads
    assert ops(module, scf.ParallelOp) >= 3


def test_reductions_over_any_set_of_dimensions() -> None:
    kernels, cases = {}, {}
    for kept, reduced in (("a, b", "c"), ("a, c", "b"), ("b, c", "a"), ("a", "b, c"), ("c", "a, b"), ("b", "a, c"), ("", "a, b, c")):
        for combiner, start in (("addf", "0.0"), ("maximumf", "0xFF800000"), ("addf", "2.5")):
            for shape in ((3, 4, 9), (2, 5, 70)):
                name = f"r_{kept.replace(', ', '')}_{combiner}_{start[0]}_{shape[2]}"
                kernels[name] = reduction(name, shape, "a, b, c", kept, reduced, combiner, start)
                out = tuple(dict(zip("abc", shape))[d] for d in kept.split(", ") if d)
                cases[name] = [((uniform(*shape), garbage(*out)), (1,))]
    check(kernels, cases, tolerance=2e-5, strict=False)


def test_integer_reductions() -> None:
    kernels, cases = {}, {}
    for position, (combiner, start, element) in enumerate(
        (("addi", "0", "i32"), ("maxsi", "-128", "i8"), ("minsi", "32767", "i16"), ("ori", "0", "i64"))
    ):
        for kept, reduced in (("a", "b"), ("b", "a"), ("", "a, b")):
            name = f"r_{position}_{kept or 'all'}"
            kernels[name] = reduction(name, (5, 43), "a, b", kept, reduced, combiner, start, element)
            out = tuple(dict(zip("ab", (5, 43)))[d] for d in kept.split(", ") if d)
            dtype = f"int{element[1:]}"
            cases[name] = [((RNG.integers(-99, 99, (5, 43)).astype(dtype), np.full(out, 7, dtype)), (1,))]
    check(kernels, cases)


@pytest.mark.parametrize("shape", [(1, 1 << 20), (1 << 20, 1), (1 << 10, 1 << 10), (1 << 15, 32)])
def test_long_sums_keep_the_bound(shape: tuple[int, int]) -> None:
    texts = [reduction("rows", shape, "a, b", "a", "b", "addf", "0.0"), reduction("columns", shape, "a, b", "b", "a", "addf", "0.0"),
             reduction("total", shape, "a, b", "", "a, b", "addf", "0.0")]  # fmt: skip
    compiled = Compiled(lowered("\n".join(texts), strict=False))
    x = RNG.uniform(0.05, 0.15, shape).astype(np.float32)
    for name, axis in (("rows", 1), ("columns", 0), ("total", None)):
        want = np.sum(x.astype(np.float64), axis=axis)
        out = np.full(want.shape, np.nan, np.float32)
        compiled.call(name, x, out)
        count = x.size if axis is None else shape[axis]
        bound = (32 + np.log2(count) + 1) * 2.0**-24 * want
        assert np.all(np.abs(out - want) <= bound), name


def in_place(m: int, n: int, alias: str) -> str:
    """x, e, y: e = exp(x - max of the row);  y = e / (sum of the row) + x. The caller may pass one array for x and e."""
    k = KernelText("p", "rows<>")
    k.arg("x", (m, n))
    k.arg("e", (m, n))
    k.args[-1] += alias
    k.arg("y", (m, n))
    k.constant("low", "0xFF800000")
    k.constant("zero", "0.0")
    k.temp("m", (m,))
    k.fill("low", "m")
    k.generic("i, j", [("x", "i, j")], ("m", "i"), "%r = arith.maximumf %o, %a0 : f32", "j")
    k.generic("i, j", [("x", "i, j"), ("m", "i")], ("e", "i, j"), "%d = arith.subf %a0, %a1 : f32\n%r = math.exp %d : f32")
    k.temp("s", (m,))
    k.fill("zero", "s")
    k.generic("i, j", [("e", "i, j")], ("s", "i"), sum_body(), "j")
    body = "%q = arith.divf %a0, %a1 : f32\n%r = arith.addf %q, %a2 : f32"
    k.generic("i, j", [("e", "i, j"), ("s", "i"), ("x", "i, j")], ("y", "i, j"), body)
    return k.done()


@pytest.mark.parametrize(("m", "n"), [(4, 9), (3, 300), (2, 2100)])
def test_results_that_may_share_memory_with_inputs_are_stored_after_the_last_read(m: int, n: int) -> None:
    text = in_place(m, n, " {gradir.alias = [0 : i64]}")
    x = uniform(m, n)
    e = np.exp(x - x.max(1, keepdims=True))
    y = e / e.sum(1, keepdims=True) + x
    out = garbage(m, n)
    Compiled(lowered(text)).call("p", x, x, out)
    np.testing.assert_allclose(x, e, rtol=3e-5)
    np.testing.assert_allclose(out, y, rtol=3e-5)


def chain(name: str, shape: tuple[int | str, ...], maps: tuple[str, str], kind: str = "elementwise<>") -> str:
    """x, y, out, mask: out = max(x * y, 0) + x, mask = x > y."""
    dims = ", ".join("abcd"[: len(shape)])
    k = KernelText(name, kind)
    for operand, map_ in zip("xy", maps):
        k.arg(operand, [dict(zip("abcd", shape))[d] for d in map_.split(", ") if d])
    k.arg("out", shape)
    k.arg("mask", shape, "i1")
    k.constant("zero", "0.0")
    k.temp("t", shape, sizes=[f"out:{d}" for d, n in enumerate(shape) if n == "?"])
    k.generic(dims, [("x", maps[0]), ("y", maps[1])], ("t", dims), "%q = arith.mulf %a0, %a1 : f32\n%r = arith.maximumf %q, %v_zero : f32")
    k.generic(dims, [("t", dims), ("x", maps[0])], ("out", dims), "%r = arith.addf %a0, %a1 : f32")
    k.generic(dims, [("x", maps[0]), ("y", maps[1])], ("mask", dims), "%r = arith.cmpf ogt, %a0, %a1 : f32")
    return k.done()


def chain_case(shape: tuple[int, ...], maps: tuple[str, str]) -> Case:
    sizes = dict(zip("abcd", shape))
    x, y = (uniform(*(sizes[d] for d in m.split(", ") if d)) for m in maps)
    return (x, y, garbage(*shape), np.zeros(shape, bool)), (2, 3)


def test_elementwise_spaces() -> None:
    kernels, cases = {}, {}
    for shape, maps in (
        ((37,), ("a", "a")), ((1,), ("a", "a")), ((0,), ("a", "a")), ((5, 7), ("a, b", "a, b")), ((5, 7), ("a, b", "b")), ((5, 7), ("a, b", "a")),
        ((4, 9), ("b, a", "a, b")), ((2, 3, 17), ("a, b, c", "b, c")), ((2, 3, 17), ("a, b, c", "a, b")), ((3, 2, 1, 5), ("a, b, c, d", "b, d")),
        ((), ("", "")),
    ):  # fmt: skip
        name = f"e_{len(kernels)}"
        kernels[name], cases[name] = chain(name, shape, maps), [chain_case(shape, maps)]
    check(kernels, cases)


def test_elementwise_of_unknown_sizes() -> None:
    kernels = {
        "one": chain("one", ("?",), ("a", "a")),
        "two": chain("two", ("?", "?"), ("a, b", "a, b")),
        "row": chain("row", (3, "?"), ("a, b", "b")),
    }
    cases = {
        "one": [chain_case((n,), ("a", "a")) for n in (0, 1, 15, 16, 17, 50)],
        "two": [chain_case(s, ("a, b", "a, b")) for s in ((0, 3), (3, 5), (4, 8))],
        "row": [chain_case((3, n), ("a, b", "b")) for n in (0, 1, 33)],
    }
    check(kernels, cases)


def test_side_by_side_dimensions_become_one_loop() -> None:
    module = lowered(chain("e", (6, 5, 8), ("a, b, c", "a, b, c")))
    assert ops(module, scf.ForOp) == 1 and ops(module, memref.CollapseShapeOp) > 0


def test_blocks_run_in_parallel_when_the_schedule_says_so() -> None:
    kernels = {
        "flat": chain("flat", (40, 2000), ("a, b", "a, b"), "elementwise<tile = [16], parallel = [0]>"),
        "rows": chain("rows", (40, 9), ("a, b", "b"), "elementwise<tile = [8], parallel = [0]>"),
        "softmax": softmax("softmax", 70, 10, "rows<tile = [4, 8], parallel = [0]>"),
        "norm": layer_norm("norm", 20, 700, "rows<tile = [4, 8], parallel = [0]>"),
    }
    cases = {
        "flat": [chain_case((40, 2000), ("a, b", "a, b"))],
        "rows": [chain_case((40, 9), ("a, b", "b"))],
        "softmax": [softmax_case(70, 10)],
        "norm": [norm_case(20, 700)],
    }
    module = check(kernels, cases, tolerance=3e-5)
    assert ops(module, scf.ParallelOp) == 4


def total(name: str, n: int, body: str, before: str = "") -> str:
    """Everything of a vector joined into one number, after `before` of each element (which is a result too)."""
    t = KernelText(name, "rows<tile = [4, 8], parallel = [0]>")
    t.arg("x", (n,))
    t.arg("y", (n,)) if before else None
    t.arg("out", ())
    t.constant("start", "0.0" if "addf" in body else "0xFF800000")
    if before:
        t.generic("i", [("x", "i")], ("y", "i"), before)
    t.fill("start", "out")
    t.generic("i", [("y" if before else "x", "i")], ("out", ""), body, "i")
    return t.done()


def test_threads_share_pieces_of_one_row() -> None:
    top = "%r = arith.maximumf %o, %a0 : f32"
    twice = "%r = arith.addf %a0, %a0 : f32"
    kernels, cases = {}, {}
    for n in (0, 1, 4095, 4096, 8191, 8192, 9000, 20001):
        kernels |= {f"sum_{n}": total(f"sum_{n}", n, sum_body()), f"top_{n}": total(f"top_{n}", n, top)}
        kernels[f"both_{n}"] = total(f"both_{n}", n, sum_body(), twice)
        holed = uniform(n)
        holed[n // 2 : n // 2 + 1] = np.nan
        cases |= {f"sum_{n}": [((uniform(n), garbage()), (1,))], f"top_{n}": [((x, garbage()), (1,)) for x in (uniform(n), holed)]}
        cases[f"both_{n}"] = [((uniform(n), garbage(n), garbage()), (1, 2))]
    module = check(kernels, cases)
    assert ops(module, scf.ParallelOp) == 3 * 5  # shorter rows are no four pieces of a block


def test_threads_share_rows_of_columns() -> None:
    kernels, cases = {}, {}
    for m, n in ((300, 65), (33, 600), (1000, 32), (31, 1000), (129, 200)):
        t = KernelText(f"columns_{m}_{n}", "rows<tile = [4, 8], parallel = [0]>")
        t.arg("x", (m, n))
        t.arg("out", (n,))
        t.temp("sums", (n,))
        t.constant("zero", "0.0")
        t.fill("zero", "sums")
        t.generic("i, j", [("x", "i, j")], ("sums", "j"), sum_body(), "i")
        t.generic("j", [("sums", "j")], ("out", "j"), "%r = arith.mulf %a0, %a0 : f32")
        kernels[t.name], cases[t.name] = t.done(), [((uniform(m, n), garbage(n)), (1,))]
    module = check(kernels, cases, tolerance=3e-5)
    assert ops(module, scf.ParallelOp) == len(kernels)
