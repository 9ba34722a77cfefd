"""Groups: kinds, roles and sections of sets of `linalg.generic` ops, on tensors and on memrefs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.ir import Operation

from gradir.dialects.upstream import func, linalg
from gradir.ir.text import parse_module
from gradir.lowering.groups import MAX_OPS, Group, group_of_kernel, joined_loops, merge, single

BODIES = {
    "exp": "%r = math.exp %i0 : f32",
    "neg": "%r = arith.negf %i0 : f32",
    "add": "%r = arith.addf %i0, %i1 : f32",
    "mul": "%r = arith.mulf %i0, %i1 : f32",
    "sum": "%r = arith.addf %i0, %acc : f32",
    "max": "%r = arith.maximumf %i0, %acc : f32",
    "dot": "%p = arith.mulf %i0, %i1 : f32\n      %r = arith.addf %acc, %p : f32",
    "strange": "%p = arith.subf %acc, %i0 : f32\n      %r = arith.mulf %p, %acc : f32",
}


def nest(result: str, body: str, kinds: str, ins: Sequence[tuple[str, str, str]], out: tuple[str, str]) -> str:
    """One generic; `ins` are (value, type, map results), `out` is (type, map results); reductions get a fill."""
    dims = ", ".join(f"d{i}" for i in range(len(kinds)))
    maps = ", ".join(f"affine_map<({dims}) -> ({m})>" for m in (*(i[2] for i in ins), out[1]))
    iterators = ", ".join('"reduction"' if k == "r" else '"parallel"' for k in kinds)
    lines = [f"%{result}e = tensor.empty() : {out[0]}"]
    dest = f"%{result}e"
    if "r" in kinds:
        lines += [
            f"%{result}c = arith.constant 0.0 : f32",
            f"%{result}f = linalg.fill ins(%{result}c : f32) outs({dest} : {out[0]}) -> {out[0]}",
        ]
        dest = f"%{result}f"
    args = ", ".join([*(f"%i{i}: f32" for i in range(len(ins))), "%acc: f32"])
    operands = f"ins({', '.join(i[0] for i in ins)} : {', '.join(i[1] for i in ins)}) " if ins else ""
    lines.append(
        f"%{result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}} {operands}outs({dest} : {out[0]}) {{\n"
        f"    ^bb0({args}):\n      {BODIES[body]}\n      linalg.yield %r : f32\n    }} -> {out[0]}"
    )
    return "\n    ".join(lines)


def kernel(args: str, *nests: str) -> func.FuncOp:
    module = parse_module(f"func.func private @k({args}) {{\n    " + "\n    ".join(nests) + "\n    return\n}")
    (function,) = module.body.block.ops
    assert isinstance(function, func.FuncOp)
    return function


def group(args: str, *nests: str) -> Group | None:
    return group_of_kernel(kernel(args, *nests))


def test_joined_loops_are_those_without_gaps_in_any_operand() -> None:
    t3, tw, to = "tensor<4x8x16xf32>", "tensor<16x32xf32>", "tensor<4x8x32xf32>"
    product = nest("y", "dot", "pppr", [("%x", t3, "d0, d1, d3"), ("%w", tw, "d3, d2")], (to, "d0, d1, d2"))
    found = group(f"%x: {t3}, %w: {tw}", product)
    assert found is not None and joined_loops(found, (0, 1)) == [(0, 1)] and joined_loops(found, (2,)) == [(2,)]
    biased = nest("z", "add", "ppp", [("%y", to, "d0, d1, d2"), ("%b", "tensor<4x32xf32>", "d0, d2")], (to, "d0, d1, d2"))
    found = group(f"%x: {t3}, %w: {tw}, %b: tensor<4x32xf32>", product, biased)  # a bias of its own for each of the outermost
    assert found is not None and joined_loops(found, (0, 1)) == [(0,), (1,)]
    turned = nest("y", "dot", "pppr", [("%x", "tensor<8x4x16xf32>", "d1, d0, d3"), ("%w", tw, "d3, d2")], (to, "d0, d1, d2"))
    found = group(f"%x: tensor<8x4x16xf32>, %w: {tw}", turned)
    assert found is not None and joined_loops(found, (0, 1)) == [(0,), (1,)]


T2, T1, T0 = "tensor<8x16xf32>", "tensor<8xf32>", "tensor<f32>"
SOFTMAX = (
    nest("m", "max", "pr", [("%x", T2, "d0, d1")], (T1, "d0")),
    nest("s", "add", "pp", [("%x", T2, "d0, d1"), ("%m", T1, "d0")], (T2, "d0, d1")),
    nest("e", "exp", "pp", [("%s", T2, "d0, d1")], (T2, "d0, d1")),
    nest("z", "sum", "pr", [("%e", T2, "d0, d1")], (T1, "d0")),
    nest("y", "mul", "pp", [("%e", T2, "d0, d1"), ("%z", T1, "d0")], (T2, "d0, d1")),
)


def test_elementwise_chain() -> None:
    g = group(
        f"%x: {T2}, %b: tensor<16xf32>",
        nest("a", "add", "pp", [("%x", T2, "d0, d1"), ("%b", "tensor<16xf32>", "d1")], (T2, "d0, d1")),
        nest("r", "exp", "pp", [("%a", T2, "d0, d1")], (T2, "d0, d1")),
    )
    assert g is not None and (g.kind, g.space, g.extents) == ("elementwise", (0, 1), (8, 16))
    assert [o.dims for o in g.ops] == [(0, 1), (0, 1)]


def test_elementwise_keeps_loops_of_a_transposed_reader_apart() -> None:
    """Reading a value of the group transposed would write in another order: two kernels."""
    T = "tensor<8x8xf32>"
    a = nest("a", "exp", "pp", [("%x", T, "d0, d1")], (T, "d0, d1"))
    assert group(f"%x: {T}", a, nest("b", "neg", "pp", [("%a", T, "d1, d0")], (T, "d0, d1"))) is None
    assert group(f"%x: {T}", a, nest("b", "add", "pp", [("%a", T, "d1, d0"), ("%a", T, "d0, d1")], (T, "d0, d1"))) is None


def test_reading_part_of_a_value_of_the_group_is_illegal() -> None:
    a = nest("a", "exp", "p", [("%x", T1, "d0")], (T1, "d0"))
    assert group(f"%x: {T1}", a, nest("b", "neg", "p", [("%a", T1, "d0 + 1")], ("tensor<7xf32>", "d0"))) is None
    assert group(f"%x: {T1}", a, nest("b", "neg", "p", [("%a", T1, "d0 * 2")], ("tensor<4xf32>", "d0"))) is None


def test_contraction_with_epilogue() -> None:
    out = "tensor<12x32xf32>"
    g = group(
        "%x: tensor<12x20xf32>, %w: tensor<20x32xf32>, %b: tensor<32xf32>",
        nest("d", "dot", "ppr", [("%x", "tensor<12x20xf32>", "d0, d2"), ("%w", "tensor<20x32xf32>", "d2, d1")], (out, "d0, d1")),
        nest("a", "add", "pp", [("%d", out, "d0, d1"), ("%b", "tensor<32xf32>", "d1")], (out, "d0, d1")),
        nest("r", "exp", "pp", [("%a", out, "d0, d1")], (out, "d0, d1")),
    )
    assert g is not None and g.kind == "contraction" and g.contraction is not None
    roles = g.contraction
    assert (roles.index, roles.batch, roles.m, roles.n, roles.k) == (0, (), (0,), (1,), (2,))
    assert g.space == (0, 1) and g.extents == (12, 32, 20) and g.ops[0].init is not None


def test_batched_contraction_with_two_of_each() -> None:
    x, w, out = "tensor<2x3x4x5x6xf32>", "tensor<2x5x6x7xf32>", "tensor<2x3x4x7xf32>"
    g = group(
        f"%x: {x}, %w: {w}",
        nest("d", "dot", "pppprr", [("%x", x, "d0, d1, d2, d4, d5"), ("%w", w, "d0, d4, d5, d3")], (out, "d0, d1, d2, d3")),
    )
    assert g is not None and g.contraction is not None
    assert (g.contraction.batch, g.contraction.m, g.contraction.n, g.contraction.k) == ((0,), (1, 2), (3,), (4, 5))


def test_convolution_is_a_contraction_with_windows() -> None:
    x, w, out = "tensor<2x11x11x3xf32>", "tensor<3x3x3x8xf32>", "tensor<2x5x5x8xf32>"
    g = group(
        f"%x: {x}, %w: {w}",
        nest(
            "d", "dot", "pppprrr",
            [("%x", x, "d0, d1 * 2 + d4, d2 * 2 + d5, d6"), ("%w", w, "d4, d5, d6, d3")],
            (out, "d0, d1, d2, d3"),
        ),
    )  # fmt: skip
    assert g is not None and g.contraction is not None
    assert (g.contraction.m, g.contraction.n, g.contraction.k) == ((0, 1, 2), (3,), (4, 5, 6))
    assert g.extents == (2, 5, 5, 8, 3, 3, 3)


def test_depthwise_convolution_has_no_n() -> None:
    x, w, out = "tensor<2x6x6x8xf32>", "tensor<3x3x8xf32>", "tensor<2x4x4x8xf32>"
    inputs = [("%x", x, "d0, d1 + d4, d2 + d5, d3"), ("%w", w, "d4, d5, d3")]
    g = group(f"%x: {x}, %w: {w}", nest("d", "dot", "pppprr", inputs, (out, "d0, d1, d2, d3")))
    assert g is not None and g.contraction is not None
    assert (g.contraction.batch, g.contraction.m, g.contraction.n, g.contraction.k) == ((3,), (0, 1, 2), (), (4, 5))


def test_a_contraction_takes_no_prologue_and_no_second_contraction() -> None:
    T = "tensor<8x8xf32>"
    first = nest("d", "dot", "ppr", [("%x", T, "d0, d2"), ("%w", T, "d2, d1")], (T, "d0, d1"))
    assert group(f"%x: {T}, %w: {T}", first, nest("e", "dot", "ppr", [("%d", T, "d0, d2"), ("%w", T, "d2, d1")], (T, "d0, d1"))) is None
    prologue = nest("a", "exp", "pp", [("%w", T, "d0, d1")], (T, "d0, d1"))
    assert group(f"%x: {T}, %w: {T}", prologue, nest("e", "dot", "ppr", [("%x", T, "d0, d2"), ("%a", T, "d2, d1")], (T, "d0, d1"))) is None


def test_softmax_sections() -> None:
    g = group(f"%x: {T2}", *SOFTMAX)
    assert g is not None and g.kind == "rows" and g.rows is not None
    assert (g.rows.outer, g.rows.inner, g.rows.sweeps) == ((0,), (1,), 3)
    assert [(s.form, s.sweep) for s in g.rows.sections] == [("reduce_inner", 0), ("full", 1), ("full", 1), ("reduce_inner", 1), ("full", 2)]


def test_softmax_over_the_first_dimension_has_the_second_one_outside() -> None:
    T, V = "tensor<8x16xf32>", "tensor<16xf32>"
    g = group(
        f"%x: {T}",
        nest("m", "max", "rp", [("%x", T, "d0, d1")], (V, "d1")),
        nest("s", "add", "pp", [("%x", T, "d0, d1"), ("%m", V, "d1")], (T, "d0, d1")),
    )
    assert g is not None and g.rows is not None
    assert (g.space, g.rows.outer, g.rows.inner) == ((0, 1), (1,), (0,))


def test_a_reduction_alone_keeps_the_fastest_dimension_inside() -> None:
    rows = group(f"%x: {T2}", nest("s", "sum", "pr", [("%x", T2, "d0, d1")], (T1, "d0")))
    columns = group(f"%x: {T2}", nest("s", "sum", "rp", [("%x", T2, "d0, d1")], ("tensor<16xf32>", "d1")))
    transposed = group("%x: tensor<16x8xf32>", nest("s", "sum", "pr", [("%x", "tensor<16x8xf32>", "d1, d0")], (T1, "d0")))
    total = group(f"%x: {T2}", nest("s", "sum", "rr", [("%x", T2, "d0, d1")], (T0, "")))
    found = [
        (g.rows.outer, g.rows.inner, g.rows.sections[0].form)
        for g in (rows, columns, transposed, total)
        if g is not None and g.rows is not None
    ]
    assert found == [((0,), (1,), "reduce_inner"), ((0,), (1,), "reduce_outer"), ((1,), (0,), "reduce_outer"), ((), (0, 1), "reduce_inner")]


def test_loss_and_bias_gradient_join_their_rows() -> None:
    """Row losses -> total -> scaled total, and the column sums of the rows -> updated bias: one kernel."""
    bias = "tensor<16xf32>"
    g = group(
        f"%x: {T2}, %b: {bias}, %n: {T0}",
        *SOFTMAX,
        nest("l", "neg", "p", [("%z", T1, "d0")], (T1, "d0")),
        nest("t", "sum", "r", [("%l", T1, "d0")], (T0, "")),
        nest("mean", "mul", "", [("%t", T0, ""), ("%n", T0, "")], (T0, "")),
        nest("db", "sum", "rp", [("%y", T2, "d0, d1")], (bias, "d1")),
        nest("nb", "add", "p", [("%b", bias, "d0"), ("%db", bias, "d0")], (bias, "d0")),
    )
    assert g is not None and g.rows is not None
    assert [(s.form, s.sweep) for s in g.rows.sections[5:]] == [
        ("row", 1), ("reduce_outer", 1), ("scalar", -1), ("reduce_outer", 2), ("inner", -1),
    ]  # fmt: skip
    assert g.rows.sections[7].after_rows


def test_column_sums_cannot_flow_back_into_the_rows() -> None:
    assert group(
        f"%x: {T2}",
        nest("e", "exp", "pp", [("%x", T2, "d0, d1")], (T2, "d0, d1")),
        nest("s", "sum", "pr", [("%e", T2, "d0, d1")], (T1, "d0")),
        nest("c", "sum", "rp", [("%e", T2, "d0, d1")], ("tensor<16xf32>", "d1")),
        nest("y", "mul", "pp", [("%e", T2, "d0, d1"), ("%c", "tensor<16xf32>", "d1")], (T2, "d0, d1")),
        nest("z", "mul", "pp", [("%y", T2, "d0, d1"), ("%s", T1, "d0")], (T2, "d0, d1")),
    ) is None  # fmt: skip


def test_layer_norm_over_two_inner_dimensions() -> None:
    T, V = "tensor<8x4x6xf32>", "tensor<8xf32>"
    g = group(
        f"%x: {T}, %s: tensor<4x6xf32>",
        nest("t", "sum", "prr", [("%x", T, "d0, d1, d2")], (V, "d0")),
        nest("u", "neg", "p", [("%t", V, "d0")], (V, "d0")),
        nest("c", "add", "ppp", [("%x", T, "d0, d1, d2"), ("%u", V, "d0")], (T, "d0, d1, d2")),
        nest("y", "mul", "ppp", [("%c", T, "d0, d1, d2"), ("%s", "tensor<4x6xf32>", "d1, d2")], (T, "d0, d1, d2")),
    )
    assert g is not None and g.rows is not None
    assert (g.rows.outer, g.rows.inner) == ((0,), (1, 2))
    assert [(s.form, s.sweep) for s in g.rows.sections] == [("reduce_inner", 0), ("row", 0), ("full", 1), ("full", 1)]


def test_a_row_that_leaves_the_cache_is_not_swept_twice() -> None:
    def normalised(n: int) -> Group | None:
        V = f"tensor<{n}xf32>"
        return group(
            f"%x: {V}",
            nest("s", "sum", "r", [("%x", V, "d0")], (T0, "")),
            nest("y", "mul", "p", [("%x", V, "d0"), ("%s", T0, "")], (V, "d0")),
        )

    small = normalised(1024)
    assert small is not None and small.rows is not None and (small.rows.outer, small.rows.sweeps) == ((), 2)
    assert normalised(1 << 20) is None


def test_windows_and_unknown_combinations_are_loops() -> None:
    pooled = group(
        "%x: tensor<8xf32>, %w: tensor<2xf32>",
        nest("p", "max", "pr", [("%x", "tensor<8xf32>", "d0 * 2 + d1"), ("%w", "tensor<2xf32>", "d1")], ("tensor<4xf32>", "d0")),
    )
    assert pooled is not None and pooled.kind == "loops" and pooled.extents == (4, 2)
    assert len(pooled.ops[0].inputs) == 1, "an operand that only gives the window's shape is no input"
    strange = group(f"%x: {T2}", nest("s", "strange", "pr", [("%x", T2, "d0, d1")], (T1, "d0")))
    assert strange is not None and strange.kind == "loops"


def test_a_matrix_times_a_vector_is_rows() -> None:
    g = group(f"%x: {T2}, %v: tensor<16xf32>", nest("d", "dot", "pr", [("%x", T2, "d0, d1"), ("%v", "tensor<16xf32>", "d1")], (T1, "d0")))
    assert g is not None and g.kind == "rows"


def test_merge_agrees_with_the_finished_kernel_and_is_bounded() -> None:
    function = kernel(f"%x: {T2}", *SOFTMAX)
    ops = [op for op in function.body.block.ops if isinstance(op, linalg.GenericOp)]
    order: dict[Operation, int] = {op: i for i, op in enumerate(ops)}
    grown = single(ops[0])
    for op in ops[1:]:
        merged = merge(single(op), grown, order)
        assert merged is not None
        grown = merged
    whole = group_of_kernel(function)
    assert whole is not None and [o.op for o in grown.ops] == [o.op for o in whole.ops]
    assert [o.dims for o in grown.ops] == [o.dims for o in whole.ops]
    layer = kernel(
        f"%x: {T2}, %w: tensor<16x16xf32>",
        nest("d", "dot", "ppr", [("%x", T2, "d0, d2"), ("%w", "tensor<16x16xf32>", "d2, d1")], (T2, "d0, d1")),
        nest("a", "add", "pp", [("%d", T2, "d0, d1"), ("%x", T2, "d0, d1")], (T2, "d0, d1")),
        nest("b", "neg", "pp", [("%a", T2, "d0, d1")], (T2, "d0, d1")),
    )
    first, *rest = [op for op in layer.body.block.ops if isinstance(op, linalg.GenericOp)]
    order = {op: i for i, op in enumerate((first, *rest))}
    grown = single(first)
    for op in rest:
        merged = merge(grown, single(op), order)
        assert merged is not None
        grown = merged
    whole = group_of_kernel(layer)
    assert whole is not None and (grown.kind, grown.space, grown.extents) == (whole.kind, whole.space, whole.extents)
    assert grown.contraction == whole.contraction and [o.dims for o in grown.ops] == [o.dims for o in whole.ops]
    chain = [nest("v0", "exp", "p", [("%x", T1, "d0")], (T1, "d0"))]
    chain += [nest(f"v{i}", "neg", "p", [(f"%v{i - 1}", T1, "d0")], (T1, "d0")) for i in range(1, MAX_OPS + 1)]
    links = [op for op in kernel(f"%x: {T1}", *chain).body.block.ops if isinstance(op, linalg.GenericOp)]
    order = {op: i for i, op in enumerate(links)}
    grown = single(links[0])
    for op in links[1:MAX_OPS]:
        merged = merge(grown, single(op), order)
        assert merged is not None
        grown = merged
    assert merge(grown, single(links[MAX_OPS]), order) is None


def test_a_result_in_another_order_of_memory_does_not_join_rows() -> None:
    """Sums of rows, then an op over the same loops whose result lies the other way round: no one order suits both."""
    t = "tensor<16x8xf32>"
    function = kernel(
        f"%x: {T2}",
        nest("n", "neg", "pp", [("%x", T2, "d0, d1")], (T2, "d0, d1")),
        nest("s", "sum", "pr", [("%n", T2, "d0, d1")], (T1, "d0")),
        nest("t", "add", "pp", [("%n", T2, "d1, d0"), ("%s", T1, "d1")], (t, "d0, d1")),
    )
    ops = [op for op in function.body.block.ops if isinstance(op, linalg.GenericOp)]
    order: dict[Operation, int] = {op: i for i, op in enumerate(ops)}
    rows = merge(single(ops[0]), single(ops[1]), order)
    assert rows is not None and rows.kind == "rows"
    assert merge(rows, single(ops[2]), order) is None and group_of_kernel(function) is None


def test_different_names_of_sizes_are_different_extents() -> None:
    T, S = 'tensor<?x16xf32, ["b", ""]>', 'tensor<?x16xf32, ["t", ""]>'
    a = (
        nest("a", "exp", "pp", [("%x", T, "d0, d1")], (T2, "d0, d1"))
        .replace(f"tensor.empty() : {T2}", f"tensor.empty(%b) : {T}")
        .replace(T2, T)
    )
    b = (
        nest("c", "neg", "pp", [("%z", S, "d0, d1")], (T2, "d0, d1"))
        .replace(f"tensor.empty() : {T2}", f"tensor.empty(%b) : {S}")
        .replace(T2, S)
    )
    args = f"%x: {T}, %z: {S}, %b: index"
    assert group(args, a, b) is None
    same = group(args, a, b.replace(S, T).replace("%z", "%x"))
    assert same is not None and same.extents == ("b", 16)


MEMREF_SOFTMAX = """
func.func private @k(%x: memref<{n}x16xf32, strided<[16, 1], offset: ?>>, %y: memref<{n}x16xf32>) {{
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<{n}x16xf32, strided<[16, 1], offset: ?>>
  %zero = arith.constant 0.0 : f32
  %m = memref.alloc({size}) : memref<{n}xf32>
  linalg.fill ins(%zero : f32) outs(%m : memref<{n}xf32>)
  linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}}
      ins(%x : memref<{n}x16xf32, strided<[16, 1], offset: ?>>) outs(%m : memref<{n}xf32>) {{
  ^bb0(%i: f32, %acc: f32):
    %r = arith.addf %i, %acc : f32
    linalg.yield %r : f32
  }}
  linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %m : memref<{n}x16xf32, strided<[16, 1], offset: ?>>, memref<{n}xf32>) outs(%y : memref<{n}x16xf32>) {{
  ^bb0(%i: f32, %s: f32, %o: f32):
    %r = arith.divf %i, %s : f32
    linalg.yield %r : f32
  }}
  memref.dealloc %m : memref<{n}xf32>
  return
}}
"""


@pytest.mark.parametrize(("n", "size"), [("8", ""), ("?", "%n")])
def test_memref_form(n: str, size: str) -> None:
    (function,) = parse_module(MEMREF_SOFTMAX.format(n=n, size=size)).body.block.ops
    assert isinstance(function, func.FuncOp)
    g = group_of_kernel(function)
    assert g is not None and g.rows is not None and g.ops[0].init is not None
    assert (g.rows.outer, g.rows.inner, g.rows.sweeps) == ((0,), (1,), 2)
    assert g.ops[0].output in g.produced and g.extents == (8 if size == "" else None, 16)


def test_a_template_has_no_group() -> None:
    function = parse_module(
        "func.func private @t(%x: tensor<8xf32>, %n: index) -> tensor<8xf32> {\n  %c = arith.constant 1 : index\n"
        "  %r = scf.for %i = %c to %n step %c iter_args(%a = %x) -> (tensor<8xf32>) {\n    scf.yield %a : tensor<8xf32>\n  }\n"
        "  return %r : tensor<8xf32>\n}"
    ).body.block.first_op
    assert isinstance(function, func.FuncOp) and group_of_kernel(function) is None
