"""The rows of the numeric rules that concern `evaluate` of the nd ops, one test per row."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradir.dialects import nd
from gradir.dialects.types import element_type, tensor
from tests.dialects.build import RUNNER, by_definition, evaluate, f32

BF16 = ml_dtypes.bfloat16
INF, NAN = np.inf, np.nan


def convert(values: Any, dtype: Any) -> np.ndarray[Any, Any]:
    return evaluate(lambda x: nd.ConvertOp.make(x, element_type(np.dtype(dtype))), values)


def bits_equal(found: Any, expected: Any) -> None:
    """Equal values, NaN where NaN is expected, and equal signs of zero."""
    found, expected = np.asarray(found), np.asarray(expected)
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(found.astype(np.float64))[zeros], np.signbit(expected.astype(np.float64))[zeros])


def nearly(found: Any, expected: Any) -> None:
    """Row "accuracy": `evaluate` rounds once; other ways are within 2 units in the last place (f32), 4 (f64)."""
    found, expected = np.asarray(found), np.asarray(expected)
    if RUNNER.get() is by_definition:
        bits_equal(found, expected)
        return
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    finite = np.isfinite(expected)
    bits_equal(found[~finite], expected[~finite])
    np.testing.assert_array_max_ulp(found[finite], expected[finite], 2 if found.dtype == np.float32 else 4)


# Types and rounding


def test_bf16_elementwise_rounds_after_each_op():
    x = np.array([256], BF16)
    total = evaluate(nd.AddOp.make, x, np.array([1], BF16))
    assert evaluate(nd.SubOp.make, total, x)[0] == 0


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (np.float32(3.14), BF16, 3.140625),
        (np.float32(3.4e38), BF16, INF),
        (np.float64(1 + 2**-8 + 2**-40), BF16, 1.0078125),
        (np.int32(257), BF16, 256),
        (np.int32(259), BF16, 260),
        (np.int64((1 << 62) + (1 << 54) + 1), BF16, float((1 << 62) + (1 << 55))),
        (np.float32(NAN), BF16, NAN),
        (np.float64(NAN), np.float16, NAN),
        (np.float64(1e39), BF16, INF),
        (np.float64(-(1 + 2**-8 + 2**-40)), BF16, -1.0078125),
    ],
)
def test_to_narrower_float_rounds_once(value: Any, dtype: Any, expected: float):
    bits_equal(convert(np.array([value]), dtype), [expected])


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.int8, [127, -128, 0, 127, -128, 1, -1]),
        (np.uint8, [255, 0, 0, 255, 0, 1, 0]),
        (np.int32, [2**31 - 1, -(2**31), 0, 300, -300, 1, -1]),
        (np.int64, [2**63 - 1, -(2**63), 0, 300, -300, 1, -1]),
    ],
)
def test_float_to_int_truncates_and_saturates(dtype: Any, expected: list[int]):
    assert convert(f32(INF, -INF, NAN, 300, -300, 1.9, -1.9), dtype).tolist() == expected


def test_float_to_int_at_the_limits():
    assert convert(np.array([2.0**63, -(2.0**63), 2.0**62]), np.int64).tolist() == [2**63 - 1, -(2**63), 2**62]
    assert convert(np.array([127.9, -128.9, 127.0]), np.int8).tolist() == [127, -128, 127]


def test_int_to_narrower_int_wraps():
    assert convert(np.array([300, -129]), np.int8).tolist() == [44, 127]


def test_to_bool_is_not_zero():
    assert convert(f32(0.5, 256, NAN, 0, -0.0), np.bool_).tolist() == [True, True, True, False, False]
    assert convert(np.array([256, 0]), np.bool_).tolist() == [True, False]


def test_denormals_are_kept():
    assert evaluate(nd.MulOp.make, f32(1e-20), f32(1e-20))[0] == np.float32(1e-40)


def test_arguments_are_unchanged():
    x = f32(3, 1, 2)
    for make in (nd.ReluOp.make, partial(nd.ReverseOp.make, dims=[0]), partial(nd.ReshapeOp.make, shape=[3])):
        result = evaluate(make, x)
        result[...] = 7
    bits_equal(x, [3, 1, 2])


# Elementwise


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, BF16])
def test_nan_wins(dtype: Any):
    x, y = np.array([NAN, 1, NAN], dtype), np.array([1, NAN, NAN], dtype)
    for make in (nd.MaxOp.make, nd.MinOp.make):
        assert np.isnan(evaluate(make, x, y).astype(float)).all()
    for make in (nd.ReluOp.make, nd.SignOp.make):
        assert np.isnan(evaluate(make, x[:1]).astype(float)).all()
    one = np.array([1, 1, NAN], dtype)
    assert np.isnan(evaluate(nd.ClampOp.make, x, y, one).astype(float)).all()
    assert np.isnan(evaluate(partial(nd.ReduceMaxOp.make, dims=[0]), y).astype(float))
    assert np.isnan(evaluate(partial(nd.ReduceMinOp.make, dims=[0]), y).astype(float))
    pooled = evaluate(lambda v: nd.ReduceWindowOp.make("max", v, [2]), x)
    assert np.isnan(pooled.astype(float)).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, BF16])
def test_signed_zeros(dtype: Any):
    minus, plus = np.array([-0.0, 0.0, -0.0], dtype), np.array([0.0, -0.0, -0.0], dtype)
    bits_equal(evaluate(nd.MaxOp.make, minus, plus), [0.0, 0.0, -0.0])
    bits_equal(evaluate(nd.MinOp.make, minus, plus), [-0.0, -0.0, -0.0])
    bits_equal(evaluate(nd.MinOp.make, -minus[2:], -plus[2:]), [0.0])
    bits_equal(evaluate(nd.SignOp.make, minus), minus)
    bits_equal(evaluate(nd.SqrtOp.make, minus), minus)
    bits_equal(evaluate(nd.CeilOp.make, np.array([-0.5], dtype)), [-0.0])
    bits_equal(evaluate(nd.ReluOp.make, minus), [0.0, 0.0, 0.0])
    zero = evaluate(nd.AddOp.make, np.array([-0.0], dtype), np.array([0.0], dtype))
    bits_equal(evaluate(nd.DivOp.make, np.array([1.0], dtype), zero), [INF])
    bits_equal(evaluate(partial(nd.ReduceMaxOp.make, dims=[0]), minus), 0.0)
    bits_equal(evaluate(partial(nd.ReduceMinOp.make, dims=[0]), minus), -0.0)
    bits_equal(evaluate(partial(nd.ReduceSumOp.make, dims=[0]), minus[2:]), 0.0)


def test_clamp_with_crossed_bounds_is_hi():
    assert evaluate(nd.ClampOp.make, f32(5, 0), f32(1, 7), f32(2, 3)).tolist() == [2, 3]


def test_comparisons_with_nan():
    x, y = f32(NAN, NAN), f32(NAN, 1)
    for direction in ("eq", "lt", "le", "gt", "ge"):
        assert not evaluate(partial(nd.CompareOp.make, direction), x, y).any()
    assert evaluate(partial(nd.CompareOp.make, "ne"), x, y).all()


def test_float_rem_is_fmod():
    found = evaluate(nd.RemOp.make, f32(-5, 5, -0.0, 1, INF, 5.5), f32(3, INF, 3, 0, 2, -2))
    bits_equal(found, [-2, 5, -0.0, NAN, NAN, 1.5])
    assert evaluate(nd.RemOp.make, f32(1e30), f32(3))[0] == np.fmod(np.float32(1e30), np.float32(3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_pow_is_ieee(dtype: Any):
    base = np.array([NAN, 1, -1, -8, -2, -0.0, 2, 0], dtype)
    exponent = np.array([0, NAN, INF, 1 / 3, 3, -1, 0.5, 0], dtype)
    nearly(evaluate(nd.PowOp.make, base, exponent), np.array([1, 1, 1, NAN, -8, -INF, np.sqrt(dtype(2)), 1], dtype))


def test_poles_and_domains():
    bits_equal(evaluate(nd.LogOp.make, f32(0, -0.0, -1, INF)), [-INF, -INF, NAN, INF])
    bits_equal(evaluate(nd.Log1pOp.make, f32(-1, -2)), [-INF, NAN])
    bits_equal(evaluate(nd.SqrtOp.make, f32(-1)), [NAN])
    bits_equal(evaluate(nd.RsqrtOp.make, f32(-0.0, 0.0, INF, -1)), [-INF, INF, 0, NAN])
    bits_equal(evaluate(nd.SinOp.make, f32(INF, -0.0)), [NAN, -0.0])


def test_atan2_of_zeros_and_infinities():
    found = evaluate(nd.Atan2Op.make, f32(0.0, -0.0, INF, 0.0), f32(-0.0, -0.0, -INF, 0.0))
    bits_equal(found, f32(np.pi, -np.pi, 3 * np.pi / 4, 0))


def test_overflow_is_inf():
    assert evaluate(nd.ExpOp.make, np.array([11.09], np.float16))[0] == INF
    assert evaluate(nd.ExpOp.make, f32(88.73))[0] == INF
    assert np.isfinite(evaluate(nd.ExpOp.make, f32(88.72)))[0]


def test_tiny_arguments_stay_accurate():
    assert evaluate(nd.ErfOp.make, f32(3e-12))[0] == np.float32(3.3851374e-12)
    assert evaluate(nd.Expm1Op.make, f32(1e-10))[0] == np.float32(1e-10)
    assert evaluate(nd.Log1pOp.make, f32(1e-10))[0] == np.float32(1e-10)
    assert evaluate(nd.TanhOp.make, f32(1e-10))[0] == np.float32(1e-10)


def test_f32_functions_are_within_an_ulp_over_the_whole_range():
    x = f32([1e-42, 1e-30, 0.1, 1, 10, 80, -80, 1e4, 1e30, -100])
    with np.errstate(all="ignore"):
        for make, exact in ((nd.ExpOp.make, np.exp), (nd.SinOp.make, np.sin), (nd.CosOp.make, np.cos), (nd.TanhOp.make, np.tanh)):
            nearly(evaluate(make, x), exact(x.astype(np.longdouble)).astype(np.float32))


def test_logistic_is_the_formula():
    assert evaluate(nd.LogisticOp.make, f32(-90, 90, 0)).tolist() == [0, 1, 0.5]


def test_i1_arithmetic():
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    for make in (nd.AddOp.make, nd.MaxOp.make, nd.OrOp.make):
        assert evaluate(make, x, y).tolist() == [False, True, True, True]
    for make in (nd.MulOp.make, nd.MinOp.make, nd.AndOp.make, nd.MulStrongOp.make):
        assert evaluate(make, x, y).tolist() == [False, False, False, True]
    assert evaluate(nd.NotOp.make, x).tolist() == [True, True, False, False]


def test_integer_overflow_wraps():
    least = np.array([-128], np.int8)
    assert evaluate(nd.AbsOp.make, least).tolist() == [-128]
    assert evaluate(nd.NegOp.make, least).tolist() == [-128]
    assert evaluate(nd.SubOp.make, np.array([0], np.uint8), np.array([1], np.uint8)).tolist() == [255]
    assert evaluate(nd.AddOp.make, np.array([127], np.int8), np.array([1], np.int8)).tolist() == [-128]
    assert evaluate(nd.MulOp.make, np.array([16], np.int8), np.array([16], np.int8)).tolist() == [0]
    assert evaluate(lambda: nd.IotaOp.make(tensor(element_type(np.int8), [129]), 0))[128] == -128


def test_integer_division_is_toward_zero():
    x, y = np.array([-7, 7, -7, 7]), np.array([2, -2, -2, 2])
    assert evaluate(nd.DivOp.make, x, y).tolist() == [-3, -3, 3, 3]
    assert evaluate(nd.RemOp.make, x, y).tolist() == [-1, 1, -1, 1]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_integer_division_never_signals(dtype: Any):
    least = np.iinfo(dtype).min
    x, y = np.array([5, -5, 0, least, least], dtype), np.array([0, 0, 0, -1, 0], dtype)
    assert evaluate(nd.DivOp.make, x, y).tolist() == [-1, -1, -1, least, -1]
    assert evaluate(nd.RemOp.make, x, y).tolist() == [5, -5, 0, 0, least]


def test_unsigned_division_by_zero_is_all_ones():
    x, y = np.array([5, 200], np.uint8), np.array([0, 3], np.uint8)
    assert evaluate(nd.DivOp.make, x, y).tolist() == [255, 66]
    assert evaluate(nd.RemOp.make, x, y).tolist() == [5, 2]


def test_shifts_by_the_width_and_more():
    x, y = np.array([-1, -1, 5, -128, 64], np.int8), np.array([8, -1, 1, 7, 100], np.int8)
    assert evaluate(nd.ShlOp.make, x, y).tolist() == [0, 0, 10, 0, 0]
    assert evaluate(nd.ShrUOp.make, x, y).tolist() == [0, 0, 2, 1, 0]
    assert evaluate(nd.ShrSOp.make, x, y).tolist() == [-1, -1, 2, -1, 0]
    u, v = np.array([200, 200], np.uint8), np.array([1, 255], np.uint8)
    assert evaluate(nd.ShrSOp.make, u, v).tolist() == [228, 255]
    assert evaluate(nd.ShrUOp.make, u, v).tolist() == [100, 0]


def test_integer_pow():
    x, y = np.array([0, 2, 1, -1, -1, 2, 0, 3]), np.array([0, -1, -5, -5, -4, 64, -1, 4])
    assert evaluate(nd.PowOp.make, x, y).tolist() == [1, 0, 1, -1, 1, 0, 0, 81]


def test_strong_zero():
    x, y = f32(0, INF, NAN, -0.0, 2, 0), f32(INF, 0, 0, NAN, 3, 5)
    found = evaluate(nd.MulStrongOp.make, x, y)
    assert found.tolist() == [0, 0, 0, 0, 6, 0]
    assert np.isnan(evaluate(nd.MulStrongOp.make, f32(NAN), f32(2)))


# Shape, indexing, order


def test_gather_clamps():
    x = f32(10, 20, 30)
    for dtype in (np.int8, np.int32, np.int64):
        assert evaluate(partial(nd.GatherOp.make, dim=0), x, np.array([-1, 5, 1], dtype)).tolist() == [10, 30, 20]
    assert evaluate(partial(nd.GatherOp.make, dim=0), x, np.array([2**64 - 1], np.uint64)).tolist() == [30]


def test_dynamic_slices_are_clamped_to_fit():
    x = np.arange(5.0)
    take = lambda v, at: nd.DynamicSliceOp.make(v, [at], [3])
    assert evaluate(take, x, np.array(4)).tolist() == [2, 3, 4]
    assert evaluate(take, x, np.array(-7)).tolist() == [0, 1, 2]
    put = lambda v, u, at: nd.DynamicUpdateSliceOp.make(v, u, [at])
    assert evaluate(put, x, np.array([8.0, 9.0]), np.array(9)).tolist() == [0, 1, 2, 8, 9]


def test_scatter_drops_outside_and_combines_duplicates():
    x = np.zeros((3, 1), np.float32)
    updates = np.array([[10], [20], [30], [40]], np.float32)
    found = evaluate(partial(nd.ScatterAddOp.make, dim=0), x, np.array([2, 3, -1, 2]), updates)
    assert found.tolist() == [[0], [0], [50]]


def test_scatter_sums_in_f32_at_least():
    row = np.ones((512, 1), BF16)
    found = evaluate(partial(nd.ScatterAddOp.make, dim=0), np.zeros((1, 1), BF16), np.zeros(512, np.int32), row)
    assert float(found[0, 0]) == 512


def test_pad_with_negative_edges():
    found = evaluate(lambda x, v: nd.PadOp.make(x, v, [-1], [2], [1]), np.array([1, 2, 3]), np.array(9))
    assert found.tolist() == [9, 2, 9, 3, 9, 9]


def test_pad_may_remove_everything():
    assert evaluate(lambda x, v: nd.PadOp.make(x, v, [-2], [-1]), np.array([1, 2, 3]), np.array(9)).tolist() == []
    assert evaluate(lambda x, v: nd.PadOp.make(x, v, [-4], [2]), np.array([1, 2, 3]), np.array(9)).tolist() == [9]


def test_size_zero_is_legal():
    empty = np.zeros((0, 3), np.float32)
    assert evaluate(nd.ReluOp.make, empty).shape == (0, 3)
    product = evaluate(lambda a, b: nd.DotGeneralOp.make(a, b, [1], [0]), np.zeros((2, 0), np.float32), empty)
    assert product.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert evaluate(partial(nd.GatherOp.make, dim=0), empty, np.zeros(0, np.int32)).shape == (0, 3)
    with pytest.raises(Exception, match="dimension 0 has size 0"):
        evaluate(partial(nd.ArgmaxOp.make, dim=0), empty)
    with pytest.raises(Exception, match="dimension 0 has size 0"):
        evaluate(partial(nd.GatherOp.make, dim=0), empty, np.zeros(2, np.int32))


def test_argmax_of_nan_and_ties():
    assert evaluate(partial(nd.ArgmaxOp.make, dim=0), f32(1, NAN, INF, NAN)) == 1
    assert evaluate(partial(nd.ArgminOp.make, dim=0), f32(1, NAN, -INF, NAN)) == 1
    assert evaluate(partial(nd.ArgmaxOp.make, dim=0), f32(-0.0, 0.0)) == 0
    assert evaluate(partial(nd.ArgminOp.make, dim=0), f32(0.0, -0.0)) == 0
    assert evaluate(partial(nd.ArgmaxOp.make, dim=0), np.array([1, NAN], BF16)) == 1


def test_index_at_is_in_bounds_by_construction():
    op = nd.IndexAtOp.make(_value(tensor(element_type(np.float32), [3])), _index(), 0)
    assert op.evaluate(f32(1, 2, 3), 2) == 3
    with pytest.raises(IndexError, match="index 3 is outside dimension 0 of size 3"):
        op.evaluate(f32(1, 2, 3), 3)


def _value(kind: Any) -> Any:
    from xdsl.ir import Block

    return Block(arg_types=[kind]).args[0]


def _index() -> Any:
    from xdsl.dialects.builtin import IndexType

    return _value(IndexType())


# Reductions and composites


def test_empty_axes():
    empty = np.zeros((2, 0), np.float32)
    over = {"dims": [1]}
    assert evaluate(partial(nd.ReduceSumOp.make, **over), empty).tolist() == [0, 0]
    assert evaluate(partial(nd.ReduceProdOp.make, **over), empty).tolist() == [1, 1]
    assert evaluate(partial(nd.ReduceMaxOp.make, **over), empty).tolist() == [-INF, -INF]
    assert evaluate(partial(nd.ReduceMinOp.make, **over), empty).tolist() == [INF, INF]
    assert evaluate(partial(nd.ReduceMaxOp.make, **over), np.zeros((1, 0), np.int8)).tolist() == [-128]
    assert evaluate(partial(nd.ReduceMinOp.make, **over), np.zeros((1, 0), np.uint8)).tolist() == [255]
    assert evaluate(partial(nd.ReduceAnyOp.make, **over), np.zeros((1, 0), bool)).tolist() == [False]
    assert evaluate(partial(nd.ReduceAllOp.make, **over), np.zeros((1, 0), bool)).tolist() == [True]
    assert evaluate(partial(nd.LogsumexpOp.make, dim=1), empty).tolist() == [-INF, -INF]


def test_narrow_sums_accumulate_in_f32_at_least():
    assert float(evaluate(partial(nd.ReduceSumOp.make, dims=[0]), np.ones(512, BF16))) == 512
    assert float(evaluate(partial(nd.ReduceSumOp.make, dims=[0]), np.ones(70000, np.float16))) == INF
    assert evaluate(partial(nd.ReduceSumOp.make, dims=[0]), np.array([100, 100], np.int8)) == -56


def test_sums_are_accurate():
    ones = np.ones(1 << 22, np.float32)
    assert evaluate(partial(nd.ReduceSumOp.make, dims=[0]), ones) == 1 << 22
    tenths = np.full((3, 1_000_000), 0.1, np.float32)
    np.testing.assert_allclose(evaluate(partial(nd.ReduceSumOp.make, dims=[1]), tenths) / 1e6, np.float32(0.1), rtol=1e-6)


@pytest.mark.parametrize("dims", [[0], [1], [0, 1], [0, 2]])
def test_f64_sums_are_pairwise(dims: list[int]):
    x = np.full((100, 100, 20), 0.1)
    found = evaluate(partial(nd.ReduceSumOp.make, dims=dims), x)
    count = np.prod([x.shape[d] for d in dims])
    terms = 32 + np.log2(count) if RUNNER.get() is by_definition else count
    assert np.max(np.abs(found - 0.1 * count)) <= terms * 2**-53 * 0.1 * count


def test_dot_runs_in_f32_at_least_and_widens_integers_first():
    x = np.full((1, 512), 1, BF16)
    assert float(evaluate(lambda a, b: nd.DotGeneralOp.make(a, b, [1], [1]), x, x)[0, 0]) == 512
    i8 = np.full((1, 4), 100, np.int8)
    wide = evaluate(lambda a, b: nd.DotGeneralOp.make(a, b, [1], [1], element=element_type(np.int32)), i8, i8)
    assert wide.tolist() == [[40000]]
    assert evaluate(lambda a, b: nd.DotGeneralOp.make(a, b, [1], [1]), i8, i8).tolist() == [[64]]


def layer_norm(x: Any, eps: float) -> Any:
    ones = np.ones(np.shape(x)[-1], np.asarray(x).dtype)
    return evaluate(partial(nd.LayerNormOp.make, eps=eps), x, ones, 0 * ones)


def test_layer_norm_scales_before_squaring():
    np.testing.assert_allclose(layer_norm(f32(8e37, -8e37, 4e37), 1e-5), [0.980581, -1.372813, 0.392232], rtol=1e-6)
    np.testing.assert_allclose(layer_norm(np.array([8e307, -8e307, 4e307]), 1e-5), [0.980581, -1.372813, 0.392232], rtol=1e-6)


def test_variance_is_shifted():
    np.testing.assert_allclose(layer_norm(f32(1e4, 1e4 + 1), 0.0), [-1, 1])
    assert layer_norm(f32(0.1, 0.1, 0.1), 1e-5).tolist() == [0, 0, 0]
    assert layer_norm(f32(0.1, 0.1, 0.1), 0.0).tolist() == [0, 0, 0]


def test_eps_stands_inside_the_root():
    np.testing.assert_allclose(layer_norm(f32(-1, 1), 3.0), [-0.5, 0.5])


def test_softmax_family_is_max_shifted():
    x = np.array([[3.4e38, -3.4e38], [-INF, -INF], [INF, 0], [1000, 1000]], np.float32)
    bits_equal(evaluate(partial(nd.LogSoftmaxOp.make, dim=1), x)[0], [0, -INF])
    bits_equal(evaluate(partial(nd.SoftmaxOp.make, dim=1), x), [[1, 0], [0, 0], [NAN, NAN], [0.5, 0.5]])
    bits_equal(evaluate(partial(nd.LogsumexpOp.make, dim=1), x), f32(3.4e38, -INF, INF, 1000 + np.log(2)))
    bits_equal(evaluate(partial(nd.LogSoftmaxOp.make, dim=1), x)[1], [-INF, -INF])


def test_cross_entropy_is_finite_where_it_can_be():
    logits = np.array([[1e4, 0, 0], [0, 0, -1e30]], np.float32)
    found = evaluate(nd.CrossEntropyOp.make, logits, np.array([0, 5], np.int8))
    bits_equal(found, f32(0, 1e30))


def test_max_pool_pads_with_the_identity():
    found = evaluate(lambda x: nd.ReduceWindowOp.make("max", x, [2], padding=[1, 1]), f32(-5, -7))
    assert found.tolist() == [-5, -5, -7]


def test_sum_windows_count_from_the_padding():
    x = np.arange(1, 17, dtype=np.float32).reshape(4, 4)
    sums = evaluate(lambda v: nd.ReduceWindowOp.make("sum", v, [3, 3], strides=[2, 2], padding=[1, 2, 1, 2]), x)
    assert sums.tolist() == [[14, 30, 12], [57, 99, 36], [27, 45, 16]]


# Derivatives that are ops


def test_max_pool_derivative_goes_to_the_first_of_ties_and_to_nan():
    scatter = lambda x, ct: nd.SelectAndScatterOp.make(x, ct, [2])
    assert evaluate(scatter, f32(1, 1, 0), f32(5, 7)).tolist() == [5, 7, 0]
    assert evaluate(scatter, f32(NAN, 1, NAN), f32(5, 7)).tolist() == [5, 0, 7]
    padded = lambda x, ct: nd.SelectAndScatterOp.make(x, ct, [2], padding=[2, 0])
    assert evaluate(padded, f32(-INF, 1), f32(3, 5, 7)).tolist() == [5, 7]
