"""Calling compiled functions: results, every mistake of an input, layouts, outputs given by the caller, failures of the run."""

from __future__ import annotations

import threading
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from gradir.errors import GradirError
from gradir.runtime import Buffer, Function, TensorSpec
from gradir.runtime.call import scalar_word
from gradir.runtime.dtypes import dtype_name, numpy_dtype
from gradir.runtime.manifest import SizeSpec
from gradir.runtime.plan import Plan, Spec, fast_call_works
from gradir.runtime.signature import check_inputs, check_outputs, make_outputs
from tests.runtime import compiled_programs as programs

X = np.arange(4, dtype=np.float32)
Y = np.full(4, 10, np.float32)


def refused(code: str, call, *arguments, **options) -> GradirError:
    with pytest.raises(GradirError) as caught:
        call(*arguments, **options)
    assert caught.value.code == code and caught.value.part == "runtime"
    return caught.value


def slow(function: Function) -> Function:
    """The same function without the native wrapper."""
    function.flat = function._slow_call
    function.__call__ = function._slow_packed_call
    return function


@pytest.fixture(params=["native", "ctypes"])
def add(request):
    function = programs.add()["add"]
    return function if request.param == "native" else slow(function)


def test_this_interpreter_uses_the_native_wrapper():
    assert fast_call_works()
    function = programs.add()["add"]
    function(X, Y)
    function.flat(X, Y)
    assert type(function.flat).__name__ == type(function.__call__).__name__ == "builtin_function_or_method"


def test_result_is_a_new_array(add):
    first, second = add(X, Y), add(X, X)
    assert np.array_equal(first, X + Y) and np.array_equal(second, X + X)
    assert first.dtype == np.float32 and first.flags.writeable and first.ctypes.data % 64 == 0


def test_results_outlive_the_module():
    result = programs.add()["add"](X, Y)
    view = result[1:]
    del result
    for _ in range(20):
        programs.add()["add"](Y, Y)
    assert np.array_equal(view, (X + Y)[1:])


def test_wrong_number_of_inputs(add):
    error = refused("RT001", add, X)
    assert error.function == "@add" and error.expected == "2 inputs: x: 4xf32, y: 4xf32" and error.found == "1 inputs"
    refused("RT001", add, X, Y, X)


def test_errors_of_a_call_point_at_the_call(add):
    error = refused("RT001", add, X)
    assert error.location.startswith(f"{__file__}:")


def test_wrong_rank(add):
    error = refused("RT002", add, X, np.zeros((2, 2), np.float32))
    assert "'y'" in error.message and error.expected == "4xf32" and error.found == "2x2xf32"


def test_wrong_size(add):
    error = refused("RT002", add, np.zeros(5, np.float32), Y)
    assert "'x'" in error.message and "dim 0" in error.message and error.found == "5xf32"


def test_wrong_element_type(add):
    error = refused("RT003", add, X.astype(np.float64), Y)
    assert error.expected == "4xf32" and error.found == "4xf64" and "astype('float32')" in error.hint


def test_other_byte_order_is_another_element_type(add):
    assert refused("RT003", add, X.astype(">f4"), Y).found == "4x>f4"


def test_not_an_array(add):
    assert "'str'" not in str(refused("RT005", add, "four numbers", Y)) and "str" in refused("RT005", add, "four numbers", Y).found
    refused("RT005", add, [1.0, 2.0, 3.0, 4.0], Y)


def test_non_contiguous_reversed_and_broadcast_inputs(add):
    wide = np.arange(8, dtype=np.float32)
    assert np.array_equal(add(wide[::2], Y), wide[::2] + Y)
    assert np.array_equal(add(X[::-1], Y), X[::-1] + Y)
    assert np.array_equal(add(np.broadcast_to(np.float32(3), (4,)), Y), Y + 3)


def test_unaligned_input(add):
    raw = np.zeros(17, np.uint8)
    unaligned = raw[1:].view(np.float32)
    unaligned[:] = X
    assert not unaligned.flags.aligned
    assert np.array_equal(add(unaligned, Y), X + Y)


def test_read_only_input(add):
    frozen = X.copy()
    frozen.flags.writeable = False
    assert np.array_equal(add(frozen, frozen), 2 * X)


def test_subclass_and_buffer_and_dlpack_inputs(add):
    class Exporter:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    assert np.array_equal(add(X.view(np.memmap), Buffer.from_array(Y)), X + Y)
    assert np.array_equal(add(Exporter(X.copy()), Y), X + Y)


def test_outputs_given(add):
    out = np.zeros(4, np.float32)
    assert add(X, Y, out=[out]) is out and np.array_equal(out, X + Y)
    strided = np.zeros(8, np.float32)
    add(X, Y, out=[strided[::2]])
    assert np.array_equal(strided[::2], X + Y) and not strided[1::2].any()
    held = Buffer((4,), "f32")
    add(X, Y, out=[held])
    assert np.array_equal(held.numpy(), X + Y)


def test_output_overlapping_an_input_is_copied():
    base = np.arange(8, dtype=np.float32)
    expected = base[:4] + base[1:5]
    function = programs.add()["add"]
    function(base[:4], base[1:5], out=[base[2:6]])
    assert np.array_equal(base[2:6], expected)


def test_overlap_is_never_passed_on(monkeypatch):
    from gradir.runtime import module

    seen = []
    real = module.invoke
    monkeypatch.setattr(
        module,
        "invoke",
        lambda spec, entry, threads, inputs, outputs, failed, callbacks: (
            seen.append((inputs, outputs)) or real(spec, entry, threads, inputs, outputs, failed)
        ),
    )
    base = np.arange(8, dtype=np.float32)
    programs.add()["add"](base[:4], Y, out=[base[2:6]])
    programs.add()["add"](X, Y, out=[base[2:6]])
    (inputs, outputs), (_, direct) = seen
    assert not any(np.may_share_memory(outputs[0], value) for value in inputs)
    assert np.shares_memory(direct[0], base)


def test_unusable_outputs(add):
    assert "out=" in refused("RT006", add, X, Y, out=[]).message
    refused("RT006", add, X, Y, out=[3])
    assert refused("RT006", add, X, Y, out=[np.zeros(5, np.float32)]).found == "5xf32"
    refused("RT006", add, X, Y, out=[np.zeros((2, 2), np.float32)])
    refused("RT006", add, X, Y, out=[np.zeros(4)])
    frozen = np.zeros(4, np.float32)
    frozen.flags.writeable = False
    assert "read-only" in refused("RT006", add, X, Y, out=[frozen]).message


@pytest.mark.parametrize("rows", [0, 1, 7])
@pytest.mark.parametrize("path", ["native", "ctypes"])
def test_dynamic_sizes_and_several_results(rows, path):
    function = programs.twice()["twice"]
    if path == "ctypes":
        slow(function)
    x = np.random.default_rng(rows).random((rows, 3), np.float32)
    doubled, count = function(x)
    assert np.array_equal(doubled, 2 * x) and doubled.shape == (rows, 3) and count == 3 * rows and count.shape == ()
    assert function(x)[1] == 3 * rows  # sizes are bound anew in each call


def test_static_dim_beside_a_dynamic_one():
    assert refused("RT002", programs.twice()["twice"], np.zeros((2, 4), np.float32)).expected == "nx3xf32"


def test_one_name_one_size():
    spec = programs.function("add", [programs.tensor("x", "n"), programs.tensor("y", "n")], [programs.tensor("sum", "n")])
    function = Function(spec, programs.add()._library, programs.manifest(spec), 1)
    error = refused("RT004", function, X, np.zeros(3, np.float32))
    assert error.expected == "n = 4 (dim 0 of 'x')" and error.found == "3 (dim 0 of 'y')"


@pytest.mark.parametrize("path", ["native", "ctypes"])
def test_limits_of_a_size(path):
    """`b >= 1, b <= 6, b a multiple of 2`: every call is checked, the native road included, and goes on after a refusal."""
    plain = programs.twice()["twice"]
    spec = replace(plain.spec, sizes=(SizeSpec("n", 1, 6, 2),))
    function = Function(spec, plain._library, programs.manifest(spec), 1)
    if path == "ctypes":
        slow(function)
    for rows in (2, 3, 4, 0, 8, 6):
        x = np.ones((rows, 3), np.float32)
        if rows in (2, 4, 6):
            assert np.array_equal(function(x)[0], 2 * x)
        else:
            error = refused("RT009", function, x)
            assert error.expected == "n >= 1, n <= 6, n a multiple of 2" and error.found == f"{rows} (dim 0 of 'x')"


def test_a_scalar_may_be_a_size():
    # the program ignores the scalar: what matters is that the result gets the size that it names
    inputs = [programs.tensor("x", 4), programs.tensor("y", 4), TensorSpec("n", (), "index", "scalar", "n")]
    spec = programs.function("add", inputs, [programs.tensor("sum", "n")])
    seen = check_inputs(spec, [X, Y, 7])[1]
    assert seen.values == {"n": (7, "value of 'n'")} and make_outputs(spec, seen)[0].shape == (7,)
    assert refused("RT004", check_inputs, spec, [X, Y, -1]).expected == "n >= 0"


def test_output_size_unknown_before_the_call():
    spec = programs.function("add", [programs.tensor("x", 4), programs.tensor("y", 4)], [programs.tensor("sum", None)])
    function = Function(spec, programs.add()._library, programs.manifest(spec), 1)
    assert "'sum'" in refused("RT008", function, X, Y).message


@pytest.mark.parametrize("path", ["native", "ctypes"])
def test_assertion_points_at_the_source(path):
    function = programs.check()["check"]
    if path == "ctypes":
        slow(function)
    assert function(np.int64(5)) == 5
    error = refused("RT020", function, np.array(-3))
    assert error.location == "model.py:12:4" and error.message == "x must not be negative" and error.function == "@model"
    assert error.op == "cf.assert" and "-3" in error.found


@pytest.mark.parametrize("path", ["native", "ctypes"])
def test_status_out_of_memory(path):
    function = programs.check()["check"]
    if path == "ctypes":
        slow(function)
    assert "bytes live" in refused("RT021", function, np.array(500)).found


def test_arena_that_does_not_fit():
    spec = programs.function("add", [programs.tensor("x", 4), programs.tensor("y", 4)], [programs.tensor("sum", 4)], arena=1 << 59)
    refused("RT021", Function(spec, programs.add()._library, programs.manifest(spec), 1), X, Y)
    refused("RT021", slow(Function(spec, programs.add()._library, programs.manifest(spec), 1)), X, Y)


def test_python_numbers_for_rank_zero():
    function = programs.check()["check"]
    assert function(7) == 7 and function(True) == 1
    refused("RT003", function, 1.5)
    refused("RT003", function, 1 << 70)
    assert programs.chain()["chain"](2) == 9.0  # (2 + 1) * 3
    refused("RT005", programs.add()["add"], 3.0, Y)


def test_two_failures_leave_nothing_behind():
    function = programs.add()["add"]
    for _ in range(3):
        refused("RT002", function, np.zeros(5, np.float32), Y)
        assert np.array_equal(function(X, Y), X + Y)


@pytest.mark.parametrize("path", ["native", "ctypes"])
def test_concurrent_calls_have_their_own_arenas(path):
    function = programs.twice()["twice"]
    if path == "ctypes":
        slow(function)
    wrong = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).random((1000, 3), np.float32)
        wrong.extend(1 for _ in range(100) if not np.array_equal(function(x)[0], 2 * x))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_builtin_alone_keeps_the_code_alive():
    function = programs.add()["add"]
    function.flat(X, Y)
    flat = function.flat
    del function
    import gc

    gc.collect()
    assert np.array_equal(flat(X, Y)[0], X + Y)


def test_outputs_do_not_share_memory():
    spec, sizes = (
        programs.function("both", [], [programs.tensor("a", 4), programs.tensor("b", 4)]),
        check_inputs(programs.function("f", [], []), [])[1],
    )
    y = np.zeros(8, np.float32)
    error = refused("RT006", check_outputs, spec, [y[:4], y[:4]], sizes)
    assert error.message == "output 1 'b' shares memory with output 0" and error.found == "4xf32"
    refused("RT006", check_outputs, spec, [y[:4], y[3:7]], sizes)
    for given in ([y[:4], y[4:]], [y[::2], y[1::2]]):
        assert check_outputs(spec, given, sizes) == given


def test_module_access():
    module = programs.add()
    assert module.functions == ("add",) and module["@add"] is module["add"] is module.add and list(module) == [module.add]
    assert "@add(x: 4xf32, y: 4xf32) -> (4xf32)" in repr(module)
    error = refused("RT007", module.__getitem__, "sub")
    assert error.expected == "one of add"
    with pytest.raises(AttributeError, match="sub"):
        _ = module.sub
    for wrong in (0, -1, 2.0, True, "2"):
        error = refused("RT017", setattr, module, "threads", wrong)
        assert error.expected == "a whole number from 1" and error.found == repr(wrong)
    module.threads = 2
    assert module.threads == 2


def test_wrapper_structs_have_the_layout_of_its_ir():
    import ctypes

    assert ctypes.sizeof(Spec) == 32 and ctypes.sizeof(Plan) == 17 * 8
    assert [name for name, _ in Plan._fields_][9:] == ["ndarray", "new_array", "handler", "callback", "user", "limits", "brief", "taken"]


def test_scalar_words():
    assert scalar_word(-1, TensorSpec("n", (), "i64", "scalar")) == -1
    assert scalar_word(True, TensorSpec("n", (), "i1", "scalar")) == 1
    assert scalar_word(2**64 - 1, TensorSpec("n", (), "ui64", "scalar")) == -1
    assert scalar_word(1.0, TensorSpec("n", (), "f32", "scalar")) == 0x3F800000
    assert scalar_word(-2.0, TensorSpec("n", (), "f64", "scalar")) == -0x4000000000000000


def test_names_of_element_types():
    assert numpy_dtype("bf16") == np.dtype(ml_dtypes.bfloat16) and dtype_name(numpy_dtype("bf16")) == "bf16"
    assert numpy_dtype("i1") == np.bool_ and dtype_name(np.dtype(np.int64)) == "i64" and dtype_name(np.dtype("U3")) == "<U3"
    with pytest.raises(ValueError, match="unknown element type 'f7'"):
        numpy_dtype("f7")
