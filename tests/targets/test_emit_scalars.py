"""Scalar and elementwise code of level 4: arithmetic, casts, half formats, control flow, memory, the ABI."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gradir.dialects.target import CpuTargetAttr, abi
from gradir.errors import GradirError
from gradir.targets.cpu import compile_assembly, compile_object
from gradir.targets.llvm.module import emit_module, translate
from tests.targets.jit import Compiled, parse, undefined_symbols

RNG = np.random.default_rng(1)
BASELINE = CpuTargetAttr.of("x86-64", vector=4)
ALLOWED = {"memcpy", "memmove", "memset"}


def elementwise(
    ops: str, sources: list[np.ndarray], types: list[str], result: np.dtype, result_type: str, target: CpuTargetAttr | None = None
) -> np.ndarray:
    """Run `ops` (from %a0, %a1, ... to %r) on every element, as scalars and as vectors of 8; both must agree."""
    n = len(sources[0])
    assert n % 8 == 0
    outs = [np.zeros(n, result), np.zeros(n, result)]
    for out, lanes in zip(outs, (0, 8)):
        typed = ops.replace("SELECT<", "vector<8xi1>, <" if lanes else "<")
        names = "".join(f"%x{k}: memref<{n}x{t}>, " for k, t in enumerate(types))
        if lanes:
            loads = [f"%a{k} = vector.load %x{k}[%i] : memref<{n}x{t}>, vector<8x{t}>" for k, t in enumerate(types)]
            store = f"vector.store %r, %o[%i] : memref<{n}x{result_type}>, vector<8x{result_type}>"
            for t in ("f64", "f32", "bf16", "f16", "i64", "i32", "i16", "i8", "i1", "index"):
                typed = typed.replace(f"<{t}>", f"vector<8x{t}>")
        else:
            loads = [f"%a{k} = memref.load %x{k}[%i] : memref<{n}x{t}>" for k, t in enumerate(types)]
            store = f"memref.store %r, %o[%i] : memref<{n}x{result_type}>"
            for t in ("f64", "f32", "bf16", "f16", "i64", "i32", "i16", "i8", "i1", "index"):
                typed = typed.replace(f"<{t}>", t)
        text = f"""func.func @f({names}%o: memref<{n}x{result_type}>) {{
  %c0 = arith.constant 0 : index
  %step = arith.constant {lanes or 1} : index
  %n = arith.constant {n} : index
  scf.for %i = %c0 to %n step %step {{
    {chr(10).join(loads)}
    {typed}
    {store}
  }}
  return
}}"""
        compiled = Compiled(text, target)
        assert undefined_symbols(compiled.object) <= ALLOWED
        assert compiled("f", *sources, out) == 0
    assert_array_equal(outs[0].view(f"u{outs[0].itemsize}"), outs[1].view(f"u{outs[0].itemsize}"))
    return outs[0]


def specials(dtype: np.dtype, n: int = 64) -> np.ndarray:
    values = RNG.standard_normal(n).astype(np.float64) * 3
    values[:12] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 65504, 1e-7, 3e38, 5e-41, -2.5]
    with np.errstate(over="ignore"):
        return values.astype(dtype)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("addf", np.add),
        ("subf", np.subtract),
        ("mulf", np.multiply),
        ("divf", np.divide),
        ("maximumf", np.maximum),
        ("minimumf", np.minimum),
    ],
)
@pytest.mark.parametrize("t", ["f32", "f64", "f16", "bf16"])
def test_float_arithmetic(op: str, expected: np.ufunc, t: str) -> None:
    dtype = {"f32": np.dtype("f4"), "f64": np.dtype("f8"), "f16": np.dtype("f2"), "bf16": np.dtype(ml_dtypes.bfloat16)}[t]
    a, b = specials(dtype), RNG.permutation(specials(dtype))
    got = elementwise(f"%r = arith.{op} %a0, %a1 : <{t}>", [a, b], [t, t], dtype, t)
    wide = np.float32 if dtype.itemsize == 2 else dtype
    with np.errstate(all="ignore"):
        want = expected(a.astype(wide), b.astype(wide)).astype(dtype)
    assert_array_equal(got.astype(np.float64), want.astype(np.float64))


@pytest.mark.parametrize("target", [None, BASELINE], ids=["host", "sse2"])
def test_every_f16_and_bf16_value_survives(target: CpuTargetAttr | None) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    for t, dtype in (("f16", np.dtype("f2")), ("bf16", np.dtype(ml_dtypes.bfloat16))):
        x = bits.view(dtype)
        wide = elementwise(f"%r = arith.extf %a0 : <{t}> to <f32>", [x], [t], np.dtype("f4"), "f32", target)
        assert_array_equal(wide, x.astype(np.float32))
        back = elementwise(f"%r = arith.truncf %a0 : <f32> to <{t}>", [wide], ["f32"], dtype, t, target)
        nan = np.isnan(wide)
        assert_array_equal(back[~nan].view(np.uint16), bits[~nan])
        assert np.isnan(back[nan].astype(np.float32)).all()


@pytest.mark.parametrize("target", [None, BASELINE], ids=["host", "sse2"])
def test_rounding_to_sixteen_bits_happens_once(target: CpuTargetAttr | None) -> None:
    f32 = np.r_[
        RNG.integers(0, 2**32, 4096, dtype=np.uint32).view(np.float32), np.float32([3.14, 65519.996, 65520, 6e-8, 2.9e-8, 1e-8, 0, -0.0])
    ]
    halves = f32[:4104]
    for t, dtype in (("f16", np.dtype("f2")), ("bf16", np.dtype(ml_dtypes.bfloat16))):
        with np.errstate(all="ignore"):
            want = halves.astype(dtype)
        got = elementwise(f"%r = arith.truncf %a0 : <f32> to <{t}>", [halves], ["f32"], dtype, t, target)
        assert_array_equal(got.astype(np.float32), want.astype(np.float32))
    d = np.array([1 + 2**-8 + 2**-40, 1 + 2**-8, 1 + 2**-8 - 2**-40, 1 + 2**-11 + 2**-40, 1 + 2**-11, 2**-25 * (1 + 2**-40), 2**-25, 1e300])
    bf = elementwise("%r = arith.truncf %a0 : <f64> to <bf16>", [d], ["f64"], np.dtype(ml_dtypes.bfloat16), "bf16", target).astype(
        np.float64
    )
    assert list(bf) == [1.0078125, 1.0, 1.0, 1.0, 1.0, 2**-25, 2**-25, np.inf]
    h = elementwise("%r = arith.truncf %a0 : <f64> to <f16>", [d], ["f64"], np.dtype("f2"), "f16", target)
    with np.errstate(over="ignore"):
        assert_array_equal(h, d.astype(np.float16))


def test_integers_to_sixteen_bits() -> None:
    x = np.array([257, 259, 2**62 + 1, -(2**53) - 1, 2049, 2051, 65520, -1], np.int64)
    got = elementwise("%r = arith.sitofp %a0 : <i64> to <bf16>", [x], ["i64"], np.dtype(ml_dtypes.bfloat16), "bf16").astype(np.float64)
    assert list(got) == [256, 260, 2.0**62, -(2.0**53), 2048, 2048, 65536, -1]
    h = elementwise("%r = arith.sitofp %a0 : <i64> to <f16>", [x], ["i64"], np.dtype("f2"), "f16").astype(np.float64)
    assert list(h) == [257, 259, np.inf, -np.inf, 2048, 2052, np.inf, -1]
    big = elementwise("%r = arith.uitofp %a0 : <i64> to <bf16>", [x], ["i64"], np.dtype(ml_dtypes.bfloat16), "bf16").astype(np.float64)
    assert_array_equal(big[:4], [256, 260, 2.0**62, 2.0**64])


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("addi", lambda a, b: a + b), ("subi", lambda a, b: a - b), ("muli", lambda a, b: a * b), ("andi", np.bitwise_and), ("ori", np.bitwise_or),
        ("xori", np.bitwise_xor), ("maxsi", np.maximum), ("minsi", np.minimum), ("floordivsi", lambda a, b: a // b),
        ("ceildivsi", lambda a, b: -(-a // b)), ("divsi", lambda a, b: np.trunc(a.astype(float) / b)), ("remsi", np.fmod),
    ],
)  # fmt: skip
@pytest.mark.parametrize("t", ["i8", "i16", "i32", "i64"])
def test_integer_arithmetic(op: str, expected: object, t: str) -> None:
    dtype = np.dtype(f"i{int(t[1:]) // 8}")
    a, b = RNG.integers(-50, 50, 64).astype(dtype), RNG.integers(1, 20, 64).astype(dtype) * RNG.choice([-1, 1], 64).astype(dtype)
    got = elementwise(f"%r = arith.{op} %a0, %a1 : <{t}>", [a, b], [t, t], dtype, t)
    assert_array_equal(got, expected(a, b).astype(dtype))  # type: ignore[operator]


@pytest.mark.parametrize("predicate", ["oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"])
def test_float_comparisons(predicate: str) -> None:
    a, b = specials(np.dtype("f4")), RNG.permutation(specials(np.dtype("f4")))
    got = elementwise(f"%r = arith.cmpf {predicate}, %a0, %a1 : <f32>", [a, b], ["f32", "f32"], np.dtype(bool), "i1")
    base = {"eq": a == b, "gt": a > b, "ge": a >= b, "lt": a < b, "le": a <= b, "ne": (a < b) | (a > b)}
    nan = np.isnan(a) | np.isnan(b)
    want = {"ord": ~nan, "uno": nan}.get(predicate)
    if want is None:
        want = base[predicate[1:]] | nan if predicate[0] == "u" else base[predicate[1:]]
    assert_array_equal(got, want)


def test_select_and_casts() -> None:
    a = RNG.standard_normal(64).astype(np.float32) * 100
    ops = """%z = arith.subf %a0, %a0 : <f32>
    %p = arith.cmpf ogt, %a0, %z : <f32>
    %fi = arith.fptosi %a0 : <f32> to <i32>
    %w = arith.extsi %fi : <i32> to <i64>
    %d = arith.sitofp %w : <i64> to <f64>
    %t = arith.truncf %d : <f64> to <f32>
    %m = arith.negf %t : <f32>
    %r = arith.select %p, %t, %m : SELECT<f32>"""
    got = elementwise(ops, [a], ["f32"], np.dtype("f4"), "f32")
    assert_array_equal(got, np.abs(np.trunc(a)))


@pytest.mark.parametrize(
    ("op", "expected"),
    [("floor", np.floor), ("ceil", np.ceil), ("roundeven", np.round), ("trunc", np.trunc), ("sqrt", np.sqrt), ("absf", np.abs)],
)
@pytest.mark.parametrize("t", ["f32", "f64"])
def test_math_that_targets_have(op: str, expected: np.ufunc, t: str) -> None:
    dtype = np.dtype("f4" if t == "f32" else "f8")
    a = np.abs(specials(dtype)) if op == "sqrt" else specials(dtype)
    with np.errstate(all="ignore"):
        assert_array_equal(elementwise(f"%r = math.{op} %a0 : <{t}>", [a], [t], dtype, t), expected(a))


def test_control_flow_carries_scalars_vectors_and_buffers() -> None:
    text = """func.func @f(%x: memref<4x8xf32>, %n: index, %o: memref<8xf32>, %count: memref<1xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %r:3 = scf.while (%i = %c0, %v = %zero, %m = %x) : (index, vector<8xf32>, memref<4x8xf32>) -> (index, vector<8xf32>, memref<4x8xf32>) {
    %go = arith.cmpi slt, %i, %n : index
    scf.condition(%go) %i, %v, %m : index, vector<8xf32>, memref<4x8xf32>
  } do {
  ^bb0(%i: index, %v: vector<8xf32>, %m: memref<4x8xf32>):
    %row = arith.remui %i, %c2 : index
    %odd = arith.cmpi eq, %row, %c1 : index
    %a = vector.load %m[%row, %c0] : memref<4x8xf32>, vector<8xf32>
    %w = scf.if %odd -> (vector<8xf32>) {
      %t = arith.addf %v, %a : vector<8xf32>
      scf.yield %t : vector<8xf32>
    } else {
      %t = arith.subf %v, %a : vector<8xf32>
      scf.yield %t : vector<8xf32>
    }
    %next = arith.addi %i, %c1 : index
    scf.yield %next, %w, %m : index, vector<8xf32>, memref<4x8xf32>
  }
  %k = scf.for %j = %c0 to %n step %c2 iter_args(%s = %c0) -> (index) {
    %t = scf.index_switch %j -> index
    case 0 {
      %u = arith.constant 100 : index
      scf.yield %u : index
    }
    case 2 {
      %u = arith.constant 20 : index
      scf.yield %u : index
    }
    default {
      scf.yield %c1 : index
    }
    %u = arith.addi %s, %t : index
    scf.yield %u : index
  }
  vector.store %r#1, %o[%c0] : memref<8xf32>, vector<8xf32>
  memref.store %k, %count[%c0] : memref<1xindex>
  return
}"""
    compiled = Compiled(text)
    x = RNG.standard_normal((4, 8)).astype(np.float32)
    for n, total in ((0, 0), (1, 100), (3, 120), (8, 122)):
        out, count = np.ones(8, np.float32), np.zeros(1, np.int64)
        assert compiled("f", x, n, out, count) == 0
        want = np.zeros(8, np.float32)
        for i in range(n):
            want = want + x[1] if i % 2 else want - x[0]
        assert_array_equal(out, want)
        assert count[0] == total


def test_dynamic_sizes_views_and_copies() -> None:
    text = """func.func private @k(%s: memref<?x4xf32, strided<[?, ?], offset: ?>>, %o: memref<?x4xf32>) {
  memref.copy %s, %o : memref<?x4xf32, strided<[?, ?], offset: ?>> to memref<?x4xf32>
  return
}
func.func @f(%x: memref<?x8xf32>, %o: memref<?x4xf32>, %bytes: memref<64xi8>, %d: memref<2xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %n = memref.dim %x, %c0 : memref<?x8xf32>
  %s = memref.subview %x[0, 1] [%n, 4] [1, 2] : memref<?x8xf32> to memref<?x4xf32, strided<[8, 2], offset: 1>>
  %t = memref.cast %s : memref<?x4xf32, strided<[8, 2], offset: 1>> to memref<?x4xf32, strided<[?, ?], offset: ?>>
  func.call @k(%t, %o) : (memref<?x4xf32, strided<[?, ?], offset: ?>>, memref<?x4xf32>) -> ()
  %v = memref.view %bytes[%c16][] : memref<64xi8> to memref<2x2xf32>
  %row = memref.subview %x[1, 0] [1, 2] [1, 1] : memref<?x8xf32> to memref<2xf32, strided<[1], offset: 8>>
  %dst = memref.subview %v[1, 0] [1, 2] [1, 1] : memref<2x2xf32> to memref<2xf32, strided<[1], offset: 2>>
  memref.copy %row, %dst : memref<2xf32, strided<[1], offset: 8>> to memref<2xf32, strided<[1], offset: 2>>
  memref.store %n, %d[%c0] : memref<2xindex>
  return
}"""
    x = RNG.standard_normal((5, 8)).astype(np.float32)
    out, raw, d = np.zeros((5, 4), np.float32), np.zeros(64, np.int8), np.zeros(2, np.int64)
    compiled = Compiled(text)
    assert undefined_symbols(compiled.object) <= ALLOWED
    assert compiled("f", x, out, raw, d, sizes=((5,), (5,))) == 0
    assert_array_equal(out, x[:, 1::2])
    assert_array_equal(raw.view(np.float32)[6:8], x[1, :2])
    assert d[0] == 5


def test_globals_allocas_and_allocation_through_the_context() -> None:
    text = """memref.global "private" constant @w : memref<4xf32> = dense<[1.0, 2.0, -3.0, 4.5]>
func.func @f(%n: index, %o: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %w = memref.get_global @w : memref<4xf32>
  %t = memref.alloc(%n) : memref<?x4xf32>
  %u = memref.alloca() : memref<4xf32>
  memref.copy %w, %u : memref<4xf32> to memref<4xf32>
  %r = memref.subview %t[0, 0] [1, 4] [1, 1] : memref<?x4xf32> to memref<4xf32, strided<[1]>>
  memref.copy %u, %r : memref<4xf32> to memref<4xf32, strided<[1]>>
  memref.copy %r, %o : memref<4xf32, strided<[1]>> to memref<4xf32>
  memref.dealloc %t : memref<?x4xf32>
  return
}"""
    compiled, out = Compiled(text), np.zeros(4, np.float32)
    assert compiled("f", 100, out) == 0
    assert_array_equal(out, [1, 2, -3, 4.5])
    assert not compiled.context.live
    assert compiled("f", 1 << 40, out) == abi.STATUS_OUT_OF_MEMORY


PARALLEL = """func.func private @k(%x: memref<8x6xf32>, %s: f32, %o: memref<8x6xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  "scf.parallel"(%c0, %c0, %c8, %c6, %c1, %c2) <{operandSegmentSizes = array<i32: 2, 2, 2, 0>}> ({
  ^bb0(%i: index, %j: index):
    %v = memref.load %x[%i, %j] : memref<8x6xf32>
    %w = arith.mulf %v, %s : f32
    memref.store %w, %o[%i, %j] : memref<8x6xf32>
    scf.reduce
  }) : (index, index, index, index, index, index) -> ()
  return
}
func.func @f(%x: memref<8x6xf32>, %s: f32, %o: memref<8x6xf32>) {
  func.call @k(%x, %s, %o) : (memref<8x6xf32>, f32, memref<8x6xf32>) -> ()
  return
}"""


def test_parallel_loops_run_through_the_context() -> None:
    x, out = RNG.standard_normal((8, 6)).astype(np.float32), np.zeros((8, 6), np.float32)
    compiled = Compiled(PARALLEL, CpuTargetAttr.of("x86-64-v3", threads=2))
    assert compiled("f", x, np.float32(3), out) == 0
    assert compiled.context.ranges == [(0, 12), (12, 24)]
    want = np.zeros_like(x)
    want[:, ::2] = x[:, ::2] * np.float32(3)
    assert_array_equal(out, want)


def test_one_thread_needs_no_closure() -> None:
    compiled, x, out = (
        Compiled(PARALLEL, CpuTargetAttr.of("x86-64-v3", threads=1)),
        np.ones((8, 6), np.float32),
        np.zeros((8, 6), np.float32),
    )
    assert compiled("f", x, np.float32(3), out) == 0
    assert not compiled.context.ranges and out[:, ::2].sum() == 3 * 24


def test_assertions_reach_the_error_slot_also_from_parallel_bodies() -> None:
    text = """func.func private @inner(%x: memref<4xi32>, %i: index) {
  %c0 = arith.constant 0 : i32
  %v = memref.load %x[%i] : memref<4xi32>
  %ok = arith.cmpi sge, %v, %c0 : i32
  cf.assert %ok, "negative"
  return
}
func.func @f(%x: memref<4xi32>, %o: memref<4xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  "scf.parallel"(%c0, %c4, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    func.call @inner(%x, %i) : (memref<4xi32>, index) -> ()
    scf.reduce
  }) : (index, index, index) -> ()
  memref.copy %x, %o : memref<4xi32> to memref<4xi32>
  return
}"""
    compiled, out = Compiled(text, CpuTargetAttr.of("x86-64-v3", threads=2)), np.zeros(4, np.int32)
    assert compiled("f", np.array([1, 2, 3, 4], np.int32), out) == 0 and out.sum() == 10
    out[:] = 0
    assert compiled("f", np.array([1, 2, -3, 4], np.int32), out) == abi.STATUS_ASSERTION
    assert not out.any() and list(compiled.context.error)[:2] == [abi.STATUS_ASSERTION, 0]
    (row,) = compiled.translation.assertions
    assert row.message == "negative" and row.op_id == 0


def test_functions_may_return_scalars() -> None:
    text = """func.func private @g(%n: index, %x: f32) -> (index, vector<4xf32>) {
  %c0 = arith.constant 0 : index
  %ok = arith.cmpi sge, %n, %c0 : index
  cf.assert %ok, "negative"
  %v = vector.broadcast %x : f32 to vector<4xf32>
  return %n, %v : index, vector<4xf32>
}
func.func @f(%n: index, %x: f32, %o: memref<8xf32>) {
  %m, %v = func.call @g(%n, %x) : (index, f32) -> (index, vector<4xf32>)
  vector.store %v, %o[%m] : memref<8xf32>, vector<4xf32>
  return
}"""
    compiled, out = Compiled(text), np.zeros(8, np.float32)
    assert compiled("f", 3, np.float32(2.5), out) == 0
    assert_array_equal(out, [0, 0, 0, 2.5, 2.5, 2.5, 2.5, 0])
    assert compiled("f", -3, np.float32(2.5), out) == abi.STATUS_ASSERTION


def test_external_kernels_go_through_the_table() -> None:
    text = emit_module(parse(PARALLEL), external_kernels=["other", "k"])
    assert "@gradir.kernels = global [2 x ptr] zeroinitializer" in text and "define internal i32 @k" not in text
    assert "getelementptr inbounds [2 x ptr], ptr @gradir.kernels, i64 0, i64 1" in text
    assert undefined_symbols(compile_object(text, CpuTargetAttr.of("x86-64"))) <= ALLOWED


def test_exported_kernels_are_visible() -> None:
    assert "define i32 @k(" in emit_module(parse(PARALLEL), exported=["k"])


def test_noalias_comes_from_the_operand_attributes_only() -> None:
    operands = (
        '%a: memref<4xf32> {gradir.access = "read"}, %b: memref<4xf32> {gradir.access = "write", gradir.alias = [2]}, %c: memref<4xf32>'
    )
    text = emit_module(parse(f"func.func private @k({operands}) {{\n  return\n}}"))
    assert "define internal i32 @k(ptr %ctx, ptr noalias readonly %a0, ptr %a1, ptr %a2)" in text


def test_wide_registers_are_asked_for() -> None:
    assert '"prefer-vector-width"="512"' in emit_module(parse(PARALLEL), target=CpuTargetAttr.of("znver4", vector=16, registers=32))


def test_assembly_names_the_functions() -> None:
    assert "f.packed:" in compile_assembly(emit_module(parse(PARALLEL)), CpuTargetAttr.of("x86-64-v3"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%v = math.exp %x : f32", "math.exp: no LLVM code for this op"),
        ("func.call @missing() : () -> ()", "@missing has no body here"),
        ("%n = arith.constant 4 : index\n %m = memref.alloca(%n) : memref<?xf32>", "the size is not static"),
    ],
)
def test_what_is_not_level_4_is_an_error(body: str, message: str) -> None:
    with pytest.raises(GradirError, match=message) as caught:
        emit_module(parse(f"func.func private @missing()\nfunc.func @f(%x: f32) {{\n {body}\n return\n}}"))
    assert caught.value.code == "OP040"


def test_rejected_text_names_a_reproducer() -> None:
    with pytest.raises(GradirError, match="LLVM rejected the emitted code") as caught:
        compile_object("define i32 @f() { ret i64 0 }", CpuTargetAttr.of("x86-64"))
    assert caught.value.code == "OP043" and ".ll" in caught.value.hint


def test_translation_is_deterministic() -> None:
    assert translate(parse(PARALLEL)).text == translate(parse(PARALLEL)).text
