"""Contractions: level 4 against level 3, both run by upstream; odd sizes, layouts, element types, convolutions, unknown sizes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from gradir.dialects.upstream import scf, vector
from tests.lowering.level3_kernels import KernelText, matmul, product_body
from tests.lowering.upstream_kernels import check, lowered, needs_upstream

pytestmark = needs_upstream
RNG = np.random.default_rng(7)


def uniform(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    if np.dtype(dtype).kind in "iu":
        return RNG.integers(-9, 9, shape).astype(dtype)
    return RNG.uniform(-1, 1, shape).astype(dtype)


def garbage(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    return np.full(shape, 77 if np.dtype(dtype).kind in "iu" else np.nan, dtype)


def ops(module: ModuleOp, kind: type) -> int:
    return sum(isinstance(op, kind) for op in module.walk())


SIZES = [(2, 3, 7), (7, 17, 2), (17, 10, 127), (13, 127, 3), (1, 70, 5), (64, 7, 9), (40, 8, 8), (35, 33, 1)]


@pytest.mark.parametrize("layout", [("m, k", "k, n"), ("k, m", "k, n"), ("m, k", "n, k"), ("k, m", "n, k")])
def test_odd_sizes_in_every_layout(layout: tuple[str, str]) -> None:
    kernels, cases = {}, {}
    for m, n, k in SIZES:
        name = f"mm_{m}_{n}_{k}"
        extent = {"m": m, "n": n, "k": k}
        kernels[name] = matmul(name, m, n, k, a=layout[0], b=layout[1])
        x, w = (uniform(tuple(extent[d.strip()] for d in text.split(","))) for text in layout)
        cases[name] = [((x, w, uniform((n,)), garbage((m, n))), (3,))]
    check(kernels, cases)


@pytest.mark.parametrize("pack", ["pack = [1]", ""])
def test_packed_or_not_the_numbers_are_the_same(pack: str) -> None:
    kernels, cases = {}, {}
    for m, n, k, width in ((13, 40, 5, 16), (20, 35, 4, 8), (8, 9, 6, 32)):
        name = f"mm_{m}_{n}_{k}"
        kernels[name] = matmul(name, m, n, k, kind=f"contraction<tile = [4, {width}], {pack}>".replace(", >", ">"))
        cases[name] = [((uniform((m, k)), uniform((k, n)), uniform((n,)), garbage((m, n))), (3,))]
    check(kernels, cases)


@pytest.mark.parametrize(("element", "dtype"), [("f64", "float64"), ("i32", "int32"), ("i64", "int64"), ("i8", "int8"), ("i16", "int16")])
def test_element_types(element: str, dtype: str) -> None:
    kernels, cases = {}, {}
    for m, n, k in ((7, 13, 5), (12, 33, 9), (1, 6, 3)):
        name = f"mm_{m}_{n}_{k}"
        kernels[name] = matmul(name, m, n, k, element)
        cases[name] = [((uniform((m, k), dtype), uniform((k, n), dtype), uniform((n,), dtype), garbage((m, n), dtype)), (3,))]
    check(kernels, cases, tolerance=1e-12 if element == "f64" else 1e-5)


def test_narrow_operands_are_widened_before_the_product() -> None:
    kernels, cases = {}, {}
    for element, dtype, wide, wide_dtype, conversion in (
        ("bf16", ml_dtypes.bfloat16, "f32", "float32", "extf"),
        ("i8", "int8", "i32", "int32", "extsi"),
    ):
        k = KernelText(f"mm_{element}", "contraction<>")
        k.arg("x", (9, 11), element)
        k.arg("w", (11, 21), element)
        k.arg("out", (9, 21), wide)
        k.constant("zero", "0.0" if wide == "f32" else "0", wide)
        k.fill("zero", "out")
        suffix = "f" if wide == "f32" else "i"
        body = (
            f"%x = arith.{conversion} %a0 : {element} to {wide}\n%y = arith.{conversion} %a1 : {element} to {wide}\n"
            f"%p = arith.mul{suffix} %x, %y : {wide}\n%r = arith.add{suffix} %o, %p : {wide}"
        )
        k.generic("m, n, k", [("x", "m, k"), ("w", "k, n")], ("out", "m, n"), body, "k")
        kernels[k.name] = k.done()
        cases[k.name] = [((uniform((9, 11), "float32").astype(dtype) if wide == "f32" else uniform((9, 11), "int8"),
                           uniform((11, 21), "float32").astype(dtype) if wide == "f32" else uniform((11, 21), "int8"),
                           garbage((9, 21), wide_dtype)), (2,))]  # fmt: skip
    check(kernels, cases)


def test_unknown_sizes() -> None:
    sizes = [(0, 5, 3), (1, 1, 1), (7, 17, 4), (13, 16, 0), (6, 0, 3), (25, 41, 6)]
    kernels = {
        "mnk": matmul("mnk", "?", "?", "?"),
        "m": matmul("m", "?", 19, 6),
        "n": matmul("n", 7, "?", 6),
        "t": matmul("t", "?", "?", 5, b="n, k"),
    }
    cases = {name: [] for name in kernels}
    for m, n, k in sizes:
        cases["mnk"].append(((uniform((m, k)), uniform((k, n)), uniform((n,)), garbage((m, n))), (3,)))
        cases["m"].append(((uniform((m, 6)), uniform((6, 19)), uniform((19,)), garbage((m, 19))), (3,)))
        cases["n"].append(((uniform((7, 6)), uniform((6, n)), uniform((n,)), garbage((7, n))), (3,)))
        cases["t"].append(((uniform((m, 5)), uniform((n, 5)), uniform((n,)), garbage((m, n))), (3,)))
    check(kernels, cases)


def test_size_zero_and_no_terms() -> None:
    kernels = {"rows": matmul("rows", 0, 5, 3), "columns": matmul("columns", 5, 0, 3), "terms": matmul("terms", 5, 6, 0)}
    cases = {
        "rows": [((uniform((0, 3)), uniform((3, 5)), uniform((5,)), garbage((0, 5))), (3,))],
        "columns": [((uniform((5, 3)), uniform((3, 0)), uniform((0,)), garbage((5, 0))), (3,))],
        "terms": [((uniform((5, 0)), uniform((0, 6)), uniform((6,)), garbage((5, 6))), (3,))],
    }
    check(kernels, cases)


def batched(name: str, b: int, m: int, n: int, k: int) -> str:
    t = KernelText(name, "contraction<>")
    t.arg("x", (b, m, k))
    t.arg("w", (b, k, n))
    t.arg("out", (b, m, n))
    t.constant("zero", "0.0")
    t.fill("zero", "out")
    t.generic("b, m, n, k", [("x", "b, m, k"), ("w", "b, k, n")], ("out", "b, m, n"), product_body(), "k")
    return t.done()


def attention_scores(name: str, b: int, h: int, q: int, s: int, d: int) -> str:
    """x [b, q, h, d] times y [b, s, h, d] to out [b, h, q, s]: batch and rows that are not neighbours in memory."""
    t = KernelText(name, "contraction<>")
    t.arg("x", (b, q, h, d))
    t.arg("y", (b, s, h, d))
    t.arg("out", (b, h, q, s))
    t.constant("zero", "0.0")
    t.fill("zero", "out")
    t.generic("b, h, q, s, d", [("x", "b, q, h, d"), ("y", "b, s, h, d")], ("out", "b, h, q, s"), product_body(), "d")
    return t.done()


def tensor_times_matrix(name: str, b: int, t: int, k: int, n: int) -> str:
    """x [b, t, k] times w [k, n]: two row dimensions that become one."""
    text = KernelText(name, "contraction<>")
    text.arg("x", (b, t, k))
    text.arg("w", (k, n))
    text.arg("out", (b, t, n))
    text.constant("zero", "0.0")
    text.fill("zero", "out")
    text.generic("b, t, n, k", [("x", "b, t, k"), ("w", "k, n")], ("out", "b, t, n"), product_body(), "k")
    return text.done()


def test_batches_and_several_dimensions_of_one_role() -> None:
    kernels = {
        "b1": batched("b1", 3, 7, 18, 5),
        "b2": batched("b2", 2, 1, 9, 4),
        "scores": attention_scores("scores", 2, 3, 5, 9, 4),
        "ttm": tensor_times_matrix("ttm", 3, 7, 5, 19),
    }
    cases = {
        "b1": [((uniform((3, 7, 5)), uniform((3, 5, 18)), garbage((3, 7, 18))), (2,))],
        "b2": [((uniform((2, 1, 4)), uniform((2, 4, 9)), garbage((2, 1, 9))), (2,))],
        "scores": [((uniform((2, 5, 3, 4)), uniform((2, 9, 3, 4)), garbage((2, 3, 5, 9))), (2,))],
        "ttm": [((uniform((3, 7, 5)), uniform((5, 19)), garbage((3, 7, 19))), (2,))],
    }
    check(kernels, cases)


def conv(name: str, n: int, h: int, w: int, c: int, o: int, kh: int, kw: int, stride: int = 1, dilation: int = 1, bias: bool = True) -> str:
    """x [n, (h-1)*stride+(kh-1)*dilation+1, .., c], w [kh, kw, c, o], [bias,] out [n, h, w, o], with relu when there is a bias."""
    t = KernelText(name, "contraction<>")
    rows, columns = (h - 1) * stride + (kh - 1) * dilation + 1, (w - 1) * stride + (kw - 1) * dilation + 1
    t.arg("x", (n, rows, columns, c))
    t.arg("f", (kh, kw, c, o))
    if bias:
        t.arg("b", (o,))
    t.arg("out", (n, h, w, o))
    t.constant("zero", "0.0")
    target = t.temp("acc", (n, h, w, o)) if bias else "out"
    t.fill("zero", target)
    maps = (f"n, y * {stride} + i * {dilation}, x * {stride} + j * {dilation}, c", "i, j, c, o", "n, y, x, o")
    t.generic("n, y, x, o, i, j, c", [("x", maps[0]), ("f", maps[1])], (target, maps[2]), product_body(), "i, j, c")
    if bias:
        body = "%q = arith.addf %a0, %a1 : f32\n%r = arith.maximumf %q, %v_zero : f32"
        t.generic("n, y, x, o", [(target, maps[2]), ("b", "o")], ("out", maps[2]), body)
    return t.done()


def test_convolutions() -> None:
    kernels, cases = {}, {}
    for n, h, w, c, o, kh, kw, stride, dilation in (
        (2, 8, 8, 1, 8, 3, 3, 1, 1), (1, 8, 8, 8, 16, 3, 3, 1, 1), (2, 4, 5, 3, 5, 3, 2, 2, 1), (1, 7, 3, 2, 1, 2, 2, 1, 2), (3, 1, 1, 4, 10, 1, 1, 1, 1),
    ):  # fmt: skip
        name = f"conv_{n}_{h}_{w}_{c}_{o}_{kh}_{kw}_{stride}_{dilation}"
        kernels[name] = conv(name, n, h, w, c, o, kh, kw, stride, dilation)
        shape = (n, (h - 1) * stride + (kh - 1) * dilation + 1, (w - 1) * stride + (kw - 1) * dilation + 1, c)
        cases[name] = [((uniform(shape), uniform((kh, kw, c, o)), uniform((o,)), garbage((n, h, w, o))), (3,))]
    check(kernels, cases)


def conv_filter(name: str, n: int, h: int, w: int, c: int, o: int, kind: str = "contraction<>") -> str:
    """The gradient of a 3x3 filter: out[i, j, c, o] sums x[n, y + i, x + j, c] * g[n, y, x, o]."""
    t = KernelText(name, kind)
    t.arg("x", (n, h + 2, w + 2, c))
    t.arg("g", (n, h, w, o))
    t.arg("out", (3, 3, c, o))
    t.constant("zero", "0.0")
    t.fill("zero", "out")
    t.generic("i, j, c, o, n, y, x", [("x", "n, y + i, x + j, c"), ("g", "n, y, x, o")], ("out", "i, j, c, o"), product_body(), "n, y, x")
    return t.done()


def test_gradients_of_a_convolution() -> None:
    """The filter's gradient sums over images and positions, the input's reads the filter transposed and walks back over positions."""
    n, h, w, c, o = 2, 5, 6, 3, 10
    s = KernelText("input", "contraction<>")
    s.arg("g", (n, h + 4, w + 4, o))
    s.arg("f", (3, 3, c, o))
    s.arg("out", (n, h + 2, w + 2, c))
    s.constant("zero", "0.0")
    s.fill("zero", "out")
    maps = [("g", "n, y - i + 2, x - j + 2, o"), ("f", "i, j, c, o")]
    s.generic("n, y, x, c, i, j, o", maps, ("out", "n, y, x, c"), product_body(), "i, j, o")
    cases = {
        "filter": [((uniform((n, h + 2, w + 2, c)), uniform((n, h, w, o)), garbage((3, 3, c, o))), (2,))],
        "input": [((uniform((n, h + 4, w + 4, o)), uniform((3, 3, c, o)), garbage((n, h + 2, w + 2, c))), (2,))],
    }
    check({"filter": conv_filter("filter", n, h, w, c, o), "input": s.done()}, cases)


def test_a_depthwise_convolution_multiplies_vectors() -> None:
    t = KernelText("depthwise", "contraction<>")
    t.arg("x", (2, 6, 7, 12))
    t.arg("f", (3, 3, 12))
    t.arg("out", (2, 4, 5, 12))
    t.constant("zero", "0.0")
    t.fill("zero", "out")
    t.generic("n, y, x, c, i, j", [("x", "n, y + i, x + j, c"), ("f", "i, j, c")], ("out", "n, y, x, c"), product_body(), "i, j")
    module = check({"depthwise": t.done()}, {"depthwise": [((uniform((2, 6, 7, 12)), uniform((3, 3, 12)), garbage((2, 4, 5, 12))), (2,))]})
    assert ops(module, vector.FMAOp) > 0 and ops(module, vector.OuterProductOp) == 0


def test_a_dividing_tile_gives_one_micro_kernel() -> None:
    module = lowered(matmul("mm", 64, 128, 64))
    assert ops(module, vector.OuterProductOp) == 1
    module = lowered(matmul("mm", 64, 10, 64))
    assert ops(module, vector.OuterProductOp) == 1


def test_strided_operands_and_results() -> None:
    """Slices of larger arrays: row strides that are not the row's length, and an offset known at run time only."""
    layout = ", strided<[24, 1], offset: ?>"
    k = KernelText("mm", "contraction<>")
    k.arg("x", (9, 5), layout=layout)
    k.arg("w", (5, 21), layout=layout)
    k.arg("out", (9, 21), layout=layout)
    k.constant("zero", "0.0")
    k.fill("zero", "out")
    k.generic("m, n, k", [("x", "m, k"), ("w", "k, n")], ("out", "m, n"), product_body(), "k")
    arrays = [uniform((9, 24))[:, :5], uniform((5, 24))[:, :21], garbage((9, 24))[:, :21]]
    check({"mm": k.done()}, {"mm": [(arrays, (2,))]})


def test_parallel_panels() -> None:
    module = check(
        {"mm": matmul("mm", 16, 48, 8, kind="contraction<tile = [4, 16], pack = [1], parallel = [1]>")},
        {"mm": [((uniform((16, 8)), uniform((8, 48)), uniform((48,)), garbage((16, 48))), (3,))]},
    )
    assert ops(module, scf.ParallelOp) == 1


def test_one_result_of_one_term_is_plain_loops() -> None:
    check({"mm": matmul("mm", 1, 1, 1)}, {"mm": [((uniform((1, 1)), uniform((1, 1)), uniform((1,)), garbage((1, 1))), (3,))]}, strict=False)


def test_few_rows_of_a_transposed_operand_are_dot_products() -> None:
    kernels, cases = {}, {}
    for m, n, k in ((1, 7, 130), (2, 9, 29), (1, 1, 75), (3, 4, 16)):
        name = f"dot_{m}_{n}_{k}"
        kernels[name] = matmul(name, m, n, k, b="n, k")
        cases[name] = [((uniform((m, k)), uniform((n, k)), uniform((n,)), garbage((m, n))), (3,))]
    module = check(kernels, cases)
    assert ops(module, vector.ReductionOp) > 0 and ops(module, vector.OuterProductOp) == 0


@pytest.mark.parametrize("pack", ["", ", pack = [1]"])
def test_blocks_of_k_add_to_results_in_memory(pack: str) -> None:
    kind = f"contraction<tile = [4, 16], block = [0, 0, 6]{pack}>"
    kernels = {
        "plain": matmul("plain", 9, 21, 20, kind=kind, epilogue=False),
        "epilogue": matmul("epilogue", 9, 21, 20, kind=kind),
        "transposed": matmul("transposed", 9, 21, 20, a="k, m", b="n, k", kind=kind),
        "filter": conv_filter("filter", 5, 3, 4, 5, 10, kind),  # images outside, two rows of positions at a time, one left over
        "rows": conv_filter("rows", 2, 5, 2, 3, 8, kind),
    }
    cases = {
        "plain": [((uniform((9, 20)), uniform((20, 21)), garbage((9, 21))), (2,))],
        "epilogue": [((uniform((9, 20)), uniform((20, 21)), uniform((21,)), garbage((9, 21))), (3,))],
        "transposed": [((uniform((20, 9)), uniform((21, 20)), uniform((21,)), garbage((9, 21))), (3,))],
        "filter": [((uniform((5, 5, 6, 5)), uniform((5, 3, 4, 10)), garbage((3, 3, 5, 10))), (2,))],
        "rows": [((uniform((2, 7, 4, 3)), uniform((2, 5, 2, 8)), garbage((3, 3, 3, 8))), (2,))],
    }
    check(kernels, cases)


def test_an_epilogue_of_polynomials_goes_row_by_row() -> None:
    kernels, cases = {}, {}
    for m, n in ((8, 32), (7, 21), (5, 27)):
        k = KernelText(f"tanh_{m}_{n}", "contraction<>")
        k.arg("x", (m, 6))
        k.arg("w", (6, n))
        k.arg("out", (m, n))
        k.constant("zero", "0.0")
        k.temp("acc", (m, n))
        k.fill("zero", "acc")
        k.generic("m, n, k", [("x", "m, k"), ("w", "k, n")], ("acc", "m, n"), product_body(), "k")
        k.generic("m, n", [("acc", "m, n")], ("out", "m, n"), "%r = math.exp %a0 : f32")
        kernels[k.name] = k.done()
        cases[k.name] = [((uniform((m, 6)), uniform((6, n)), garbage((m, n))), (2,))]
    module = check(kernels, cases)
    assert all(len(op.results[0].type.get_shape()) <= 1 for op in module.walk() if op.name == "math.exp")


def test_a_mask_in_memory_selects_in_the_epilogue() -> None:
    k = KernelText("masked", "contraction<>")
    k.arg("x", (7, 6))
    k.arg("w", (6, 21))
    k.arg("mask", (7, 21), "i1")
    k.arg("out", (7, 21))
    k.constant("zero", "0.0")
    k.temp("acc", (7, 21))
    k.fill("zero", "acc")
    k.generic("m, n, k", [("x", "m, k"), ("w", "k, n")], ("acc", "m, n"), product_body(), "k")
    body = "%r = arith.select %a1, %a0, %v_zero : f32"
    k.generic("m, n", [("acc", "m, n"), ("mask", "m, n")], ("out", "m, n"), body)
    mask = RNG.integers(0, 2, (7, 21)).astype(bool)
    check({"masked": k.done()}, {"masked": [((uniform((7, 6)), uniform((6, 21)), mask, garbage((7, 21))), (3,))]})
