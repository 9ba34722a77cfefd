"""Plain loops: any map, any element type, any rank; level 4 against level 3, both run by upstream."""

from __future__ import annotations

import numpy as np

from gradir.dialects.upstream import linalg, scf, vector
from tests.lowering.level3_kernels import KernelText, memref, product_body, sum_body
from tests.lowering.upstream_kernels import Compiled, check, lowered, needs_upstream, parse

pytestmark = needs_upstream
RNG = np.random.default_rng(11)
DTYPES = {"f32": "float32", "f64": "float64", "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64"}


def values(shape: tuple[int, ...], element: str = "f32") -> np.ndarray:
    return RNG.integers(-50, 50, shape).astype(DTYPES[element])


def one(
    name: str, dims: str, ins: list[tuple[str, tuple, str, str]], out: tuple[tuple, str, str], body: str, reduced: str = "", init: str = ""
) -> str:
    """A kernel of one op: ins are (name, shape, element, map), out is (shape, element, map)."""
    k = KernelText(name, "loops<>")
    for operand, shape, element, _ in ins:
        k.arg(operand, shape, element)
    k.arg("out", out[0], out[1])
    if init:
        k.constant("start", init, out[1])
        k.fill("start", "out")
    k.generic(dims, [(n, m) for n, _, _, m in ins], ("out", out[2]), body, reduced)
    return k.done()


def test_a_kernel_of_another_kind_than_it_says() -> None:
    k = KernelText("f", "contraction<>")
    k.arg("x", (19,), "f32")
    k.arg("out", (19,), "f32")
    k.generic("i", [("x", "i")], ("out", "i"), "%r = arith.addf %a0, %a0 : f32")
    check({"f": k.done()}, {"f": [([values((19,)), values((19,))], (1,))]}, strict=False)


def test_maps_that_are_no_projections() -> None:
    copy = "%r = arith.addf %a0, %a0 : f32"
    kernels = {
        "transpose": one("transpose", "i, j", [("x", (9, 7), "f32", "j, i")], ((7, 9), "f32", "i, j"), copy),
        "reverse": one("reverse", "i, j", [("x", (3, 19), "f32", "i, -j + 18"), ("s", (3, 19), "f32", "i, j")], ((3, 19), "f32", "i, j"),
                       "%r = arith.addf %a0, %a1 : f32"),
        "step": one("step", "i", [("x", (37,), "f32", "i * 2 + 1"), ("s", (18,), "f32", "i")], ((18,), "f32", "i"), "%r = arith.subf %a0, %a1 : f32"),
        "diagonal": one("diagonal", "i", [("x", (11, 11), "f32", "i, i")], ((11,), "f32", "i"), copy),
        "repeat": one("repeat", "i", [("x", (5,), "f32", "i floordiv 4"), ("y", (4,), "f32", "i mod 4")], ((20,), "f32", "i"),
                      "%r = arith.mulf %a0, %a1 : f32"),
        "swapped": one("swapped", "i, j", [("x", (9, 7), "f32", "i, j")], ((7, 9), "f32", "j, i"), copy),
        "corner": one("corner", "i, j", [("x", (9, 7), "f32", "i + 2, 3"), ("s", (6, 5), "f32", "i, j")], ((6, 5), "f32", "i, j"),
                      "%r = arith.addf %a0, %a1 : f32"),
    }  # fmt: skip
    shapes = {"transpose": [(9, 7), (7, 9)], "reverse": [(3, 19)] * 3, "step": [(37,), (18,), (18,)], "diagonal": [(11, 11), (11,)],
              "repeat": [(5,), (4,), (20,)], "swapped": [(9, 7), (7, 9)], "corner": [(9, 7), (6, 5), (6, 5)]}  # fmt: skip
    check(kernels, {n: [([values(s) for s in shapes[n]], (len(shapes[n]) - 1,))] for n in kernels})


def test_element_types_alone_and_converted() -> None:
    kernels, cases = {}, {}
    for element in ("f32", "f64", "i8", "i16", "i32", "i64"):
        add, compare = ("addf", "cmpf ogt,") if element[0] == "f" else ("addi", "cmpi sgt,")
        add_name, compare_name = f"add_{element}", f"greater_{element}"
        pair = [("x", (2, 21), element, "i, j"), ("y", (21,), element, "j")]
        kernels[add_name] = one(add_name, "i, j", pair, ((2, 21), element, "i, j"), f"%r = arith.{add} %a0, %a1 : {element}")
        kernels[compare_name] = one(compare_name, "i, j", pair, ((2, 21), "i1", "i, j"), f"%r = arith.{compare} %a0, %a1 : {element}")
        operands = (values((2, 21), element), values((21,), element))
        cases[add_name] = [((*operands, values((2, 21), element)), (2,))]
        cases[compare_name] = [((*operands, values((2, 21), "i1")), (2,))]
    mixed = [("c", (33,), "i1", "i"), ("x", (33,), "i8", "i"), ("y", (33,), "f64", "i")]
    body = "%w = arith.sitofp %a1 : i8 to f64\n%r = arith.select %a0, %w, %a2 : f64"
    kernels["mixed"] = one("mixed", "i", mixed, ((33,), "f64", "i"), body)
    cases["mixed"] = [((values((33,), "i1"), values((33,), "i8"), values((33,), "f64"), values((33,), "f64")), (3,))]
    check(kernels, cases)


def test_reductions_with_every_combiner() -> None:
    kernels, cases = {}, {}
    combiners = [("f32", "addf", "0.0"), ("f32", "mulf", "1.0"), ("f64", "maximumf", "0xFFF0000000000000"), ("f32", "minimumf", "0x7F800000"),
                 ("i32", "addi", "0"), ("i8", "muli", "1"), ("i32", "maxsi", "-2147483648"), ("i16", "minsi", "32767"), ("i32", "ori", "0"),
                 ("i32", "andi", "-1"), ("i32", "addi", "5")]  # fmt: skip
    for position, (element, combiner, start) in enumerate(combiners):
        for reduced, kept, shape in (("j", "i", (6,)), ("i", "j", (19,)), ("i, j", "", ())):
            name = f"{combiner}_{position}_{kept or 'all'}"
            body = f"%r = arith.{combiner} %a0, %o : {element}"
            kernels[name] = one(name, "i, j", [("x", (6, 19), element, "i, j")], (shape, element, kept), body, reduced, start)
            cases[name] = [((values((6, 19), element), values(shape, element)), (1,))]
    check(kernels, cases)


def test_a_reduction_that_no_combiner_describes_keeps_the_order() -> None:
    body = "%h = arith.mulf %o, %o : f32\n%r = arith.subf %a0, %h : f32"
    kernels = {"fold": one("fold", "i, j", [("x", (3, 4), "f32", "i, j")], ((3,), "f32", "i"), body, "j", "0.5")}
    check(kernels, {"fold": [((RNG.uniform(-1, 1, (3, 4)).astype(np.float32), values((3,))), (1,))]})


def test_reductions_that_start_from_what_is_there() -> None:
    kernels = {"more": one("more", "i, j", [("x", (4, 9), "f32", "j, i")], ((9,), "f32", "i"), sum_body(), "j"),
               "product": one("product", "i, j", [("x", (4, 9), "f32", "j, i"), ("y", (4,), "f32", "j")], ((9,), "f32", "i"), product_body(), "j")}  # fmt: skip
    check(kernels, {"more": [((values((4, 9)), values((9,))), (1,))], "product": [((values((4, 9)), values((4,)), values((9,))), (2,))]})


def test_windows() -> None:
    k = KernelText("pool", "loops<>")
    k.arg("x", (2, 9, 8, 5))
    k.arg("window", (3, 2))
    k.arg("out", (2, 4, 7, 5))
    k.constant("low", "0xFF800000")
    k.fill("low", "out")
    maps = [("x", "n, y * 2 + i, x + j, c"), ("window", "i, j")]
    k.generic("n, y, x, c, i, j", maps, ("out", "n, y, x, c"), "%r = arith.maximumf %o, %a0 : f32", "i, j")
    check({"pool": k.done()}, {"pool": [((values((2, 9, 8, 5)), values((3, 2)), values((2, 4, 7, 5))), (2,))]})


def gather(name: str, dims: str, shape: tuple[int, ...], index: str, at: str, out: tuple[tuple[int, ...], str]) -> str:
    k = KernelText(name, "loops<>")
    k.arg("table", shape)
    k.arg("at", (6,), "i32")
    k.arg("out", out[0])
    loops = [d.strip() for d in dims.split(",")]
    lines = [f"%{d} = linalg.index {p} : index" for p, d in enumerate(loops)]
    lines += ["%k = arith.index_cast %a0 : i32 to index", f"%r = memref.load %v_table[{at}] : {memref(shape)}"]
    k.generic(dims, [("at", index)], ("out", out[1]), "\n".join(lines))
    return k.done()


def test_gathers_of_rows_and_of_elements() -> None:
    kernels = {
        "rows": gather("rows", "i, j", (9, 21), "i", "%k, %j", ((6, 21), "i, j")),
        "elements": gather("elements", "j, i", (21, 9), "i", "%j, %k", ((21, 6), "j, i")),
    }
    at = RNG.integers(0, 9, 6).astype(np.int32)
    cases = {"rows": [((values((9, 21)), at, values((6, 21))), (2,))], "elements": [((values((21, 9)), at, values((21, 6))), (2,))]}
    module = check(kernels, cases)
    rows = next(op for op in module.body.block.ops if "rows" in str(op)[:60])
    assert any(isinstance(op, vector.LoadOp) for op in rows.walk())


def test_indices_as_values() -> None:
    body = (
        "%i = linalg.index 0 : index\n%j = linalg.index 1 : index\n%c = arith.constant 100 : index\n%m = arith.muli %i, %c : index\n"
        "%s = arith.addi %m, %j : index\n%r = arith.index_cast %s : index to i32"
    )
    check({"iota": one("iota", "i, j", [], ((5, 13), "i32", "i, j"), body)}, {"iota": [((values((5, 13), "i32"),), (0,))]})


def test_unknown_and_zero_sizes() -> None:
    k = KernelText("sum", "loops<>")
    k.arg("x", ("?", "?"))
    k.arg("out", ("?",))
    k.constant("zero", "0.0")
    k.fill("zero", "out")
    k.generic("i, j", [("x", "i, j")], ("out", "j"), sum_body(), "i")
    sizes = [(0, 3), (3, 0), (1, 1), (4, 17), (2, 8)]
    check({"sum": k.done()}, {"sum": [((values((m, n)), values((n,))), (1,)) for m, n in sizes]})


def test_several_ops_go_through_scratch_memory() -> None:
    k = KernelText("two", "loops<>")
    k.arg("x", (7, 5))
    k.arg("out", (5, 7))
    k.temp("t", (5, 7))
    k.generic("i, j", [("x", "j, i")], ("t", "i, j"), "%r = arith.mulf %a0, %a0 : f32")
    k.generic("i, j", [("t", "-i + 4, j"), ("x", "j, i")], ("out", "i, j"), "%r = arith.addf %a0, %a1 : f32")
    big = KernelText("big", "loops<>")
    big.arg("x", ("?", 300))
    big.arg("out", ("?", 300))
    big.temp("t", ("?", 300), sizes=["x:0"])
    big.generic("i, j", [("x", "i, j")], ("t", "i, j"), "%r = arith.mulf %a0, %a0 : f32")
    big.generic("i, j", [("t", "i, j"), ("t", "i, 0")], ("out", "i, j"), "%r = arith.addf %a0, %a1 : f32")
    cases = {"two": [((values((7, 5)), values((5, 7))), (1,))], "big": [((values((n, 300)), values((n, 300))), (1,)) for n in (0, 1, 6)]}
    check({"two": k.done(), "big": big.done()}, cases)


def test_a_fill_is_a_kernel_too() -> None:
    k = KernelText("ones", "elementwise<>")
    k.arg("out", (3, 11))
    k.constant("one", "1.0")
    k.fill("one", "out")
    check({"ones": k.done()}, {"ones": [((values((3, 11)),), (0,))]}, strict=False)


def test_long_f32_sums_stay_accurate() -> None:
    kernels = {"sum": one("sum", "i", [("x", (1 << 16,), "f32", "i")], ((), "f32", ""), sum_body(), "i", "0.0")}
    module = lowered("\n".join(kernels.values()))
    x, out = np.full(1 << 16, 0.1, np.float32), np.zeros((), np.float32)
    Compiled(module).call("sum", x, out)
    exact = float(np.sum(x.astype(np.float64)))
    assert abs(float(out) - exact) <= 48 * 2.0**-24 * exact


TEMPLATE = """
func.func private @t(%x: memref<4x3xf32>, %out: memref<3xf32>) attributes {gradir.kernel = #kernel.template<>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%out : memref<3xf32>)
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    linalg.generic {indexing_maps = [affine_map<(j) -> (j)>], iterator_types = ["parallel"]} outs(%out : memref<3xf32>) {
    ^bb0(%o: f32):
      %j = linalg.index 0 : index
      %v = memref.load %x[%i, %j] : memref<4x3xf32>
      %r = arith.addf %o, %v : f32
      linalg.yield %r : f32
    }
  }
  return
}
"""


def test_templates_keep_their_loops_and_lose_their_linalg() -> None:
    module = check({"t": TEMPLATE}, {"t": [((values((4, 3)), values((3,))), (1,))]})
    assert not any(isinstance(op, linalg.GenericOp | linalg.FillOp) for op in module.walk())
    plain = parse("func.func private @p(%x: memref<4xf32>) attributes {gradir.kernel = #kernel.template<>} {\n return\n}")
    assert str(lowered(str(plain))) == str(plain)
    assert sum(isinstance(op, scf.ForOp) for op in module.walk()) >= 1
