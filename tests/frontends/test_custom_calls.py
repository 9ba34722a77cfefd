"""Functions of the user by name: values, derivatives, effects, C functions, saved programs, and every way to get them wrong."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.dialects import custom_calls
from gradir.driver.cache import Cache
from gradir.driver.report import CompileReport
from gradir.errors import GradirError
from gradir.ir.text import print_module
from gradir.reference import run
from gradir.runtime import library

X = np.linspace(-1, 1, 5).astype(np.float32)

C_SOURCE = """
#include <stdint.h>
#include <string.h>
typedef struct { void* data; int64_t dtype, rank; const int64_t *sizes, *strides; } Buffer;
typedef struct { int64_t inputs, outputs; const Buffer* buffers; const char* config; } Call;
int32_t triple(const Call* c) {
  const Buffer *x = &c->buffers[0], *y = &c->buffers[1];
  if (c->inputs != 1 || c->outputs != 1 || x->dtype != 2) return 7;
  int64_t n = 1, step = 1;
  for (int64_t k = x->rank - 1; k >= 0; --k) {
    if (x->strides[k] != step || y->strides[k] != step) return 8;
    step *= x->sizes[k];
    n *= x->sizes[k];
  }
  if (strstr(c->config, "fail")) return 5;
  for (int64_t k = 0; k < n; ++k) ((float*)y->data)[k] = 3 * ((const float*)x->data)[k];
  return 0;
}
"""
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@pytest.fixture
def register() -> Any:
    """Registers functions, and forgets them afterwards."""
    names: list[str] = []

    def add(name: str, *arguments: Any, **options: Any) -> None:
        names.append(name)
        gd.register_custom_call(name, *arguments, **options)

    yield add
    for name in names:
        custom_calls.CALLS.pop(name, None)
        library.ROWS.pop(name, None)


@pytest.fixture
def cube(register: Callable[..., None]) -> None:
    def derivative(inputs: Any, result: Any, ct: Any, scale: float = 1.0) -> Any:
        return [3 * scale * ct * inputs[0] ** 2]

    register("cube", lambda x, scale=1.0: (scale * x**3).astype(x.dtype), shape=lambda x, **_: x, vjp=derivative)


@pytest.fixture(scope="module")
def shared_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("c")
    (folder / "f.c").write_text(C_SOURCE)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", folder / "libf.so", folder / "f.c"], check=True)
    return folder / "libf.so"


def loss(x: Any) -> Any:
    return gd.sum(gd.custom_call("cube", gd.sin(x), scale=2.0))


def failure(function: Callable[[], Any], code: str) -> GradirError:
    with pytest.raises(GradirError) as caught:
        function()
    assert caught.value.code == code
    return caught.value


def test_value_and_derivative(cube: None) -> None:
    np.testing.assert_allclose(gd.jit(lambda x: gd.custom_call("cube", x))(X), X**3, rtol=1e-6)
    np.testing.assert_allclose(gd.grad(loss)(X), 6 * np.sin(X) ** 2 * np.cos(X), rtol=1e-5)
    with gd.eager():
        np.testing.assert_allclose(np.asarray(gd.custom_call("cube", gd.asarray(X))), X**3, rtol=1e-6)
        np.testing.assert_allclose(np.asarray(gd.grad(loss)(X)), 6 * np.sin(X) ** 2 * np.cos(X), rtol=1e-5)


def test_second_derivatives_go_through_the_rule(cube: None) -> None:
    second = gd.jit(gd.grad(lambda x: gd.sum(gd.grad(lambda y: gd.sum(gd.custom_call("cube", y)))(x))))
    np.testing.assert_allclose(second(X), 6 * X, rtol=1e-5)


def test_several_results_no_result_and_complex(register: Callable[..., None]) -> None:
    seen: list[Any] = []
    register("pair", lambda x: (-x, np.array(x.sum(), x.dtype)), shape=lambda x: (gd.Spec(x.shape), gd.Spec(())))
    register("note", lambda x: seen.append(x.copy()), shape=lambda x: (), effects=True)
    register("conjugate", np.conj, shape=lambda z: z)

    def f(x: Any) -> Any:
        for k in range(3):
            gd.custom_call("note", x * k)
        return gd.custom_call("pair", x)

    def eagerly(x: Any) -> Any:
        with gd.eager():
            return [np.asarray(value) for value in f(gd.asarray(x))]

    for call in (gd.jit(f), eagerly):
        seen.clear()
        negated, total = call(X)
        np.testing.assert_array_equal(negated, -X)
        assert total == X.sum()
        assert len(seen) == 3 and all(np.array_equal(found, X * k) for k, found in enumerate(seen))
    z = np.array([1 + 2j, -3j], np.complex64)
    np.testing.assert_array_equal(gd.jit(lambda z: gd.custom_call("conjugate", 2 * z))(z), 2 * np.conj(z))


def test_a_pure_call_that_nobody_reads_goes_and_one_with_effects_stays(register: Callable[..., None]) -> None:
    count: list[int] = []
    register("pure", lambda x: count.append(1) or x, shape=lambda x: x)
    register("effect", lambda x: count.append(2) or x, shape=lambda x: x, effects=True)

    def f(x: Any) -> Any:
        gd.custom_call("pure", x)
        gd.custom_call("effect", x)
        return x + 1

    gd.jit(f)(X)
    assert count == [2]


def test_effects_keep_their_order_where_fusion_would_change_it(register: Callable[..., None]) -> None:
    """The first call reads a value that is fused with what comes after the second."""
    seen: list[int] = []
    register("mark", lambda x, k: seen.append(k), shape=lambda x, k: (), effects=True)

    def f(x: Any, y: Any) -> Any:
        a = gd.exp(x)
        gd.custom_call("mark", a, k=1)
        gd.custom_call("mark", y, k=2)
        b = gd.sin(a) + y
        gd.custom_call("mark", gd.sum(b * a, axis=1), k=3)

        def body(i: Any, c: Any) -> Any:
            gd.custom_call("mark", c, k=4)
            return c * 2

        gd.custom_call("mark", gd.fori_loop(0, 2, body, x), k=5)
        return b

    x = np.ones((4, 5), np.float32)
    gd.jit(f)(x, x)
    assert seen == [1, 2, 3, 4, 4, 5]
    seen.clear()
    gd.grad(lambda x: gd.sum(f(x, x)))(x)  # once, in the forward part
    assert seen == [1, 2, 3, 4, 4, 5]


def test_in_loops_and_slices(cube: None) -> None:
    y = np.arange(12, dtype=np.float32).reshape(3, 4) / 4

    def f(x: Any) -> Any:
        inner = gd.fori_loop(0, 2, lambda i, c: gd.custom_call("cube", c) / 2, x[:, 1:3])
        return gd.concatenate([inner, x, gd.custom_call("cube", gd.transpose(x)[:3])], axis=1)

    half = (y[:, 1:3] ** 3 / 2) ** 3 / 2
    np.testing.assert_allclose(gd.jit(f)(y), np.concatenate([half, y, y.T[:3] ** 3], 1), rtol=1e-5)


@needs_cc
def test_a_c_function_runs_without_python(register: Callable[..., None], shared_library: Path) -> None:
    register("triple", (str(shared_library), "triple"), shape=lambda x, **_: x)
    register("by_pointer", ctypes.CDLL(str(shared_library)).triple, shape=lambda x: x)
    y = np.arange(12, dtype=np.float32).reshape(3, 4)
    for name in ("triple", "by_pointer"):  # a slice with gaps is copied, a transpose is made
        f = gd.jit(lambda x, name=name: gd.custom_call(name, x[:, 1:3]) + gd.sum(gd.custom_call(name, gd.transpose(x))))
        np.testing.assert_array_equal(f(y), 3 * y[:, 1:3] + 3 * y.sum())
    with gd.eager():
        np.testing.assert_array_equal(np.asarray(gd.custom_call("triple", gd.asarray(y))), 3 * y)
    error = failure(lambda: gd.jit(lambda x: gd.custom_call("triple", x, fail=True))(y), "RT032")
    assert "status 5" in error.message and "test_custom_calls.py" in error.location


@needs_cc
def test_a_capsule_holds_a_c_function(register: Callable[..., None], shared_library: Path) -> None:
    address = ctypes.cast(ctypes.CDLL(str(shared_library)).triple, ctypes.c_void_p).value
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
    register("capsule", new(address, None, None), shape=lambda x: x)
    np.testing.assert_array_equal(gd.jit(lambda x: gd.custom_call("capsule", x))(X), 3 * X)


def test_what_a_function_raises_is_the_cause(register: Callable[..., None]) -> None:
    def bad(x: Any) -> Any:
        raise KeyError("no such thing")

    register("bad", bad, shape=lambda x: x)
    f = gd.jit(lambda x: gd.custom_call("bad", x))
    for _ in range(2):  # the process lives, and so does the program
        error = failure(lambda: f(X), "RT032")
        assert error.op == "nd.custom_call" and "test_custom_calls.py" in error.location and "@bad" in error.message
        assert isinstance(error.__cause__, KeyError)
    with gd.eager():
        error = failure(lambda: gd.custom_call("bad", gd.asarray(X)), "RT032")
    assert isinstance(error.__cause__, KeyError)
    register("mutates", lambda x: x.fill(0), shape=lambda x: x)
    error = failure(lambda: gd.jit(lambda x: gd.custom_call("mutates", x))(X), "RT032")
    assert "read-only" in str(error.__cause__)


def test_an_interrupt_is_not_swallowed(register: Callable[..., None]) -> None:
    def stop(x: Any) -> Any:
        raise KeyboardInterrupt

    register("stop", stop, shape=lambda x: x)
    with pytest.raises(KeyboardInterrupt):
        gd.jit(lambda x: gd.custom_call("stop", x))(X)


def test_wrong_results_are_named(register: Callable[..., None]) -> None:
    register("wide", lambda x: x.astype(np.float64), shape=lambda x: x)
    error = failure(lambda: gd.jit(lambda x: gd.custom_call("wide", x))(X), "RT032")
    assert isinstance(error.__cause__, GradirError) and error.__cause__.code == "RT033"
    assert "float64" in error.__cause__.found
    with gd.eager():
        assert "float64" in failure(lambda: gd.custom_call("wide", gd.asarray(X)), "OP051").found


def test_without_a_derivative_rule_the_error_says_how(register: Callable[..., None]) -> None:
    register("plain", lambda x: x, shape=lambda x: x)
    error = failure(lambda: gd.grad(lambda x: gd.sum(gd.custom_call("plain", x)))(X), "AD009")
    assert "vjp=rule" in error.hint and "test_custom_calls.py" in error.location
    np.testing.assert_array_equal(gd.grad(lambda x: gd.sum(x * gd.stop_gradient(gd.custom_call("plain", x))))(X), X)


def test_a_rule_with_wrong_cotangents(register: Callable[..., None]) -> None:
    register("summed", lambda x: x, shape=lambda x: x, vjp=lambda inputs, result, ct: [gd.sum(ct)])
    error = failure(lambda: gd.grad(lambda x: gd.sum(gd.custom_call("summed", x)))(X), "AD011")
    assert "tensor<5xf32>" in error.expected and "tensor<f32>" in error.found


def test_wrong_registrations_and_calls(cube: None, register: Callable[..., None], tmp_path: Path) -> None:
    assert "'nope'" in failure(lambda: gd.jit(lambda x: gd.custom_call("nope", x))(X), "GR117").found
    assert "result=" in failure(lambda: (register("bare", lambda x: x), gd.jit(lambda x: gd.custom_call("bare", x))(X)), "GR117").expected
    failure(lambda: gd.jit(lambda x: gd.custom_call("cube", x, table=np.ones(3)))(X), "GR117")
    failure(lambda: gd.register_custom_call("", lambda x: x), "GR117")
    failure(lambda: gd.register_custom_call("name"), "GR117")
    failure(lambda: gd.register_custom_call("name", 3), "RT031")
    failure(lambda: gd.register_custom_call("name", (str(tmp_path / "none.so"), "f")), "RT031")
    register("picky", lambda x: x, shape=lambda x: gd.Spec((x.shape[5],)))
    assert "IndexError" in failure(lambda: gd.jit(lambda x: gd.custom_call("picky", x))(X), "GR117").message
    assert "f32" in failure(lambda: gd.jit(lambda x: gd.custom_call("cube", x, result=gd.Spec((2,))))(X), "GR117").expected


def test_a_call_without_a_shape_rule_names_its_result(register: Callable[..., None]) -> None:
    register("rows", lambda x: x.sum(0, keepdims=True))
    found = gd.jit(lambda x: gd.custom_call("rows", x, result=gd.Spec((1, 4))))(np.ones((3, 4), np.float32))
    np.testing.assert_array_equal(found, np.full((1, 4), 3, np.float32))


def test_threads_and_saved_programs(cube: None, tmp_path: Path) -> None:
    program = gd.compile(loss, X)
    wrong: list[Any] = []

    def call() -> None:
        wrong.extend(k for k in range(50) if abs(float(program(X + k)) - float((2 * np.sin(X + k) ** 3).sum())) > 1e-3)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    path = tmp_path / "loss.gradir"
    program.save(path)
    code = """
import sys
sys.modules["xdsl"] = None
import numpy as np
import gradir.runtime.library
from gradir import runtime
try:
    runtime.load(sys.argv[1])
except runtime.library.GradirError as error:
    assert error.code == "RT030" and "@cube" in error.found, error
runtime.library.register("cube", lambda x, scale: (scale * x**3).astype(x.dtype))
x = np.linspace(-1, 1, 5).astype(np.float32)
assert abs(runtime.load(sys.argv[1])["loss"](x + 1) - (2 * np.sin(x + 1) ** 3).sum()) < 1e-5
"""
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_program_cache_sees_a_new_derivative(register: Callable[..., None], tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    uses: list[str] = []

    def gradient(scale: float) -> Any:
        register("linear", lambda x: x, shape=lambda x: x, vjp=lambda inputs, result, ct: [scale * ct])
        traced = gd.jit(gd.grad(lambda x: gd.sum(gd.custom_call("linear", x)))).lower(X)
        report = CompileReport()
        from gradir.driver.compile import compile_module

        module = compile_module(traced, cache=cache, report=report)
        uses.append(report.program_cache)
        return module[module.functions[0]](X)[0]

    assert [gradient(2.0), gradient(2.0), gradient(3.0)] == [2.0, 2.0, 3.0]
    assert uses == ["miss", "hit", "miss"]


def test_named_sizes(cube: None) -> None:
    f = gd.jit(lambda x: gd.custom_call("cube", x) + 1, dynamic={"x": (gd.Dim("n"),)})
    for n in (0, 1, 5):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(f(x), x**3 + 1)


def test_the_traced_program_is_text_that_runs(cube: None) -> None:
    module = gd.jit(lambda x: gd.custom_call("cube", x, scale=2.0)).lower(X)
    assert "nd.custom_call @cube(%x) {config = {scale = 2.000000e+00 : f64}}" in print_module(module)
    (name,) = [op.sym_name.data for op in module.body.block.ops]
    np.testing.assert_array_equal(run(module, name, [X])[0], 2 * X**3)
