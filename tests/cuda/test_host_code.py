"""Host code of programs for CUDA: control flow, values that it reads, copies, constants, donation, run-time sizes, library functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError
from gradir.runtime import load
from tests.cuda import DEVICE

X = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)


def on_device(function: Any, *arguments: Any, **options: Any) -> Any:
    return gd.jit(function, target=DEVICE, **options)(*arguments)


def reads(function: Any, *arguments: Any) -> tuple[Any, int]:
    """The result, and how often the call waited for the device."""
    jitted = gd.jit(function, target=DEVICE)
    jitted(*arguments)
    before = gd.device(DEVICE).synchronisations
    result = jitted(*arguments)
    return result, gd.device(DEVICE).synchronisations - before


def halve(x: Any) -> Any:
    return gd.while_loop(lambda s: gd.sum(s) > 1.0, lambda s: s * 0.5, x)


def test_a_loop_on_a_value_of_the_device_reads_it_once_a_round() -> None:
    x = np.full(4, 8.0, np.float32)
    result, count = reads(halve, x)
    np.testing.assert_array_equal(np.asarray(result), np.full(4, 0.25, np.float32))
    assert count == 6  # five rounds, and the test that ends it


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_branch_reads_its_condition(sign: float) -> None:
    def choose(x: Any) -> Any:
        return gd.cond(gd.sum(x) > 0, lambda v: v * 2, lambda v: v - 1, x)

    x = np.full(4, sign, np.float32)
    result, count = reads(choose, x)
    np.testing.assert_array_equal(np.asarray(result), x * 2 if sign > 0 else x - 1)
    assert count == 1


def test_straight_programs_and_counted_loops_wait_for_nothing() -> None:
    def body(x: Any) -> Any:
        return gd.fori_loop(0, 3, lambda i, v: gd.tanh(gd.matmul(v, gd.transpose(v)) @ v), x)

    result, count = reads(body, X)
    assert count == 0
    np.testing.assert_allclose(np.asarray(result), gd.jit(body)(X), rtol=1e-4)


def test_constants_are_uploaded_once() -> None:
    table = np.arange(12, dtype=np.float32).reshape(3, 4)

    def look(i: Any) -> Any:
        return gd.take(gd.asarray(table), i, axis=0) * 2

    jitted = gd.jit(look, target=DEVICE)
    i = np.array([2, 0, 2], np.int32)
    np.testing.assert_array_equal(np.asarray(jitted(i)), table[i] * 2)
    before = gd.device(DEVICE).copies_in
    jitted(i)
    assert gd.device(DEVICE).copies_in == before + 1


def test_copies_of_parts() -> None:
    def parts(x: Any) -> Any:
        return gd.concatenate([x[:, 4:], x[:, :2]], axis=1), gd.stack([x[0], x[3]])

    for found, wanted in zip(on_device(parts, X), gd.jit(parts)(X), strict=True):
        np.testing.assert_array_equal(np.asarray(found), wanted)


def test_copies_with_gaps_are_kernels_that_equal_ones_share() -> None:
    def framed(x: Any) -> Any:
        return gd.conv(gd.conv(x, gd.asarray(KERNEL), padding="SAME"), gd.asarray(KERNEL), padding="SAME")

    x = np.random.default_rng(1).standard_normal((2, 6, 6, 3)).astype(np.float32)
    compiled = gd.compile(framed, x, target=DEVICE)
    np.testing.assert_allclose(np.asarray(compiled(x)), gd.jit(framed)(x), rtol=1e-4, atol=1e-5)


KERNEL = np.random.default_rng(2).standard_normal((3, 3, 3, 3)).astype(np.float32) * 0.2

LEVEL_3 = """
func.func @f(%x: memref<3x4xf32>, %y: memref<3x8xf32>) attributes {gradir.inputs = 1 : i64, gradir.results = 1 : i64} {
  %c = arith.constant 7.0 : f32
  linalg.fill ins(%c : f32) outs(%y : memref<3x8xf32>)
  %left = memref.subview %y[0, 0] [3, 4] [1, 1] : memref<3x8xf32> to memref<3x4xf32, strided<[8, 1]>>
  memref.copy %x, %left : memref<3x4xf32> to memref<3x4xf32, strided<[8, 1]>>
  memref.copy %x, %left : memref<3x4xf32> to memref<3x4xf32, strided<[8, 1]>>
  return
}
"""


def test_entries_written_by_hand() -> None:
    compiled = gd.compile(gd.parse(LEVEL_3), target=DEVICE)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(np.asarray(compiled["f"](x)), np.concatenate([x, np.full((3, 4), 7, np.float32)], 1))
    device = compiled.manifest.device
    assert [kernel.name for kernel in device.kernels] == ["nest_0", "copy_0"]
    assert [launch.kernel for launch in device.launches] == ["nest_0", "copy_0"]  # a kernel's host function is called twice


def test_donated_arguments_are_the_result() -> None:
    step = gd.jit(lambda w, g: w - 0.5 * g, target=DEVICE, donate=(0,))
    w, g = gd.device_put([X, X * 2], DEVICE)
    result = step(w, g)
    assert result.address == w.address
    np.testing.assert_array_equal(np.asarray(result), X - X)
    with pytest.raises(GradirError, match="given away") as caught:
        w.numpy()
    assert caught.value.code == "RT023"
    with pytest.raises(GradirError) as caught:
        step(g, g)
    assert caught.value.code == "RT022"
    kept = X.copy()
    step(kept, X)  # an array of the host is copied
    np.testing.assert_array_equal(kept, X)


@pytest.mark.parametrize("rows", [0, 1, 6])
def test_sizes_of_run_time(rows: int) -> None:
    f = gd.jit(lambda x: gd.softmax(x @ gd.asarray(X[:, :5].T)), target=DEVICE, dynamic={"x": ("b", 5)})
    x = np.ones((rows, 5), np.float32)
    wanted = np.exp(x @ X[:, :5].T)
    np.testing.assert_allclose(np.asarray(f(x)), wanted / wanted.sum(1, keepdims=True), rtol=1e-5)


def test_assertions_and_wrong_arguments() -> None:
    f = gd.jit(lambda x: x + 1, target=DEVICE).compile(X)
    for code, arguments in (
        ("RT001", ()),
        ("RT002", (X.T,)),
        ("RT003", (X.astype(np.float64),)),
        ("RT002", (gd.device_put(X[0], DEVICE),)),
    ):
        with pytest.raises(GradirError) as caught:
            f.flat(*arguments)
        assert caught.value.code == code


def test_library_functions_run_on_the_host() -> None:
    a = X[:, :5] @ X[:, :5].T + 5 * np.eye(5, dtype=np.float32)
    found = on_device(lambda a: gd.linalg.cholesky(a) * 1.0, a)
    np.testing.assert_allclose(np.asarray(found), np.linalg.cholesky(a), rtol=1e-4, atol=1e-5)


def test_a_saved_program_runs_on_a_device(tmp_path: Any) -> None:
    compiled = gd.compile(gd.softmax, X, target=DEVICE)
    compiled.save(tmp_path / "f.gradir")
    module = load(tmp_path / "f.gradir", DEVICE)
    (found,) = module["softmax"].flat(X)
    np.testing.assert_array_equal(found.numpy(), np.asarray(compiled(X)))
    device = module.manifest.device
    assert device is not None and [kernel.name for kernel in device.kernels] == sorted({launch.kernel for launch in device.launches})


def test_results_go_to_given_arrays() -> None:
    f = gd.jit(lambda x: x * 2, target=DEVICE)
    there, here = gd.device_put(np.zeros_like(X), DEVICE), np.zeros_like(X)
    assert f(X, out=there) is there and f(X, out=here) is here
    np.testing.assert_array_equal(there.numpy(), 2 * X)
    np.testing.assert_array_equal(here, 2 * X)
    with pytest.raises(GradirError) as caught:
        f(X, out=here[0])
    assert caught.value.code == "RT006"
