"""The device behind cupy, with a stand-in for cupy and the driver: programs, graphs, staging, errors, what it says without a GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradir as gd
from bench.gpu.training import STEPS
from gradir.errors import GradirError
from gradir.runtime import abi
from gradir.runtime.cuda import device as devices
from gradir.runtime.cuda.cupy_device import BLOCKING_VARIABLE, CupyDevice, load_cupy
from gradir.runtime.cuda.spec import DeviceSpec, KernelSpec
from tests.cuda.fake_cupy import FakeCupy

TARGET = "cuda:1"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    """The stand-in as GPU number 1; programs have no cubin."""
    world = FakeCupy()
    monkeypatch.setattr("gradir.driver.build_cuda.find_ptxas", lambda: None)
    monkeypatch.setitem(devices._devices, TARGET, CupyDevice(1, world.module, world.libcuda))
    yield world


def jitted(function: Any, **options: Any) -> Any:
    return gd.jit(function, target=TARGET, cache=False, **options)


def test_a_training_step(fake: FakeCupy) -> None:
    step, arguments = STEPS["mlp"](1)
    loss, params = jitted(step)(*arguments)
    assert not fake.launched and gd.device(TARGET).synchronisations == 0
    wanted_loss, wanted = gd.jit(step)(*arguments)
    assert float(loss) == pytest.approx(float(wanted_loss), rel=1e-4)
    for a, b in zip(params, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-4, atol=1e-4)
    assert fake.launched and gd.device(TARGET).limits.arch == "sm_80"


def test_graphs_are_captured_on_a_stream_of_their_own_and_run_on_the_callers(fake: FakeCupy) -> None:
    def several(x: Any) -> Any:
        return gd.softmax(gd.matmul(gd.softmax(gd.matmul(x, x)), x))

    f, device = jitted(several, donate=(0,)), gd.device(TARGET)
    x, wanted = gd.device_put(np.eye(4, dtype=np.float32), TARGET), np.eye(4, dtype=np.float32)
    for _ in range(4):
        x, wanted = f(x), gd.jit(several)(wanted)
    assert device.graph_launches >= 1 and not fake.launched
    np.testing.assert_allclose(x.numpy(), wanted, rtol=1e-5)


def test_copies_of_the_host_go_through_staging_that_is_not_reused_too_early(fake: FakeCupy) -> None:
    device: Any = gd.device(TARGET)
    arrays = [np.full(100, k, np.float32) for k in range(6)]
    there = [gd.device_put(array, TARGET) for array in arrays]
    assert device._staging.made == 6  # no copy has run yet
    for array, copy in zip(arrays, there, strict=True):
        np.testing.assert_array_equal(copy.numpy(), array)
    made = device._staging.made
    gd.device_put(arrays[0], TARGET)
    assert device._staging.made == made


def test_a_failure_that_comes_late_names_the_last_launches(fake: FakeCupy) -> None:
    y = jitted(lambda x: x + 1)(np.ones(4, np.float32))
    fake.failing = "cudaErrorIllegalAddress: an illegal memory access was encountered"
    with pytest.raises(GradirError) as caught:
        y.numpy()
    error = caught.value
    assert error.code == "RT073" and "illegal memory access" in error.message and "test_cupy_device.py" in error.found
    assert BLOCKING_VARIABLE in (error.hint or "")


def test_blocking_launches_name_the_one(fake: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BLOCKING_VARIABLE, "1")
    monkeypatch.setitem(devices._devices, TARGET, CupyDevice(1, fake.module, fake.libcuda))
    f = jitted(lambda x: x + 1)
    np.testing.assert_array_equal(f(np.ones(4, np.float32)).numpy(), np.full(4, 2))
    fake.failing = "cudaErrorIllegalAddress"
    with pytest.raises(GradirError, match=r"kernel @.* failed") as caught:
        f(np.ones(4, np.float32))
    assert caught.value.code == "RT073" and "test_cupy_device.py" in caught.value.location and "illegal memory" in caught.value.found


def test_memory_that_cupy_lacks(fake: FakeCupy) -> None:
    with pytest.raises(GradirError) as caught:
        gd.device_put(np.zeros(1 << 25, np.uint8), TARGET)
    assert caught.value.code == "RT071"


def test_arrays_of_other_libraries_are_taken_where_they_lie_and_kept(fake: FakeCupy) -> None:
    x = gd.device_put(np.arange(4, dtype=np.float32), TARGET)
    array = SimpleNamespace(
        data=SimpleNamespace(ptr=x.address), device=SimpleNamespace(id=1), dtype=np.dtype(np.float32), shape=(4,), ndim=1
    )  # fmt: skip
    theirs = SimpleNamespace(__cuda_array_interface__={}, array=array, shape=(4,), dtype=np.dtype(np.float32))
    theirs = type("Theirs", (), dict(vars(theirs), __dlpack_device__=lambda self: (1, 0)))()
    f, device = jitted(lambda x: x * 3), gd.device(TARGET)
    copies = device.copies_in
    function = gd.compile(lambda x: x * 3, gd.Spec((4,)), target=TARGET, cache=False).function
    y = function(theirs)
    assert device.copies_in == copies and len(device._held) == 1  # type: ignore[attr-defined]
    np.testing.assert_array_equal(y.numpy(), np.arange(4) * 3)
    f(x)
    device.hold((), y.stream)
    assert not device._held  # type: ignore[attr-defined]
    interface = y.__cuda_array_interface__
    assert interface == {
        "shape": (4,), "typestr": "<f4", "data": (y.address, False), "version": 3, "strides": None, "stream": y.stream.handle or 1
    }  # fmt: skip
    assert y.__dlpack_device__() == (2, 1)


def test_dynamic_shared_memory_is_asked_for_and_refusals_are_explained(fake: FakeCupy) -> None:
    device = CupyDevice(1, fake.module, fake.libcuda)
    text = b".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n ret;\n}\n"
    handles, _ = device.load_functions(DeviceSpec("sm_80", 0, kernels=(KernelSpec("k", (), dynamic_shared=100_000),)), [text])
    assert fake.attributes == [(handles[0], 8, 100_000)]
    with pytest.raises(GradirError) as caught:
        device.load_functions(DeviceSpec("sm_80", 0, kernels=(KernelSpec("k", (), dynamic_shared=200_000),)), [text])
    assert caught.value.code == "RT074" and "invalid argument" in caught.value.found
    with pytest.raises(GradirError) as caught:
        device.load_functions(DeviceSpec("sm_90", 0, kernels=(KernelSpec("k", ()),)), [b"\x7fELF"])
    assert caught.value.code == "RT074" and "NO_BINARY" in caught.value.found


def test_tensor_maps_are_encoded_once(fake: FakeCupy) -> None:
    device = CupyDevice(1, fake.module, fake.libcuda)
    words = [abi.ELEMENT_CODES["bf16"], 2, 512, 256, 1024, 64, 128, 128]
    assert device.tensor_map(4096, words) == bytes([7]) * 128 == device.tensor_map(4096, words)
    (call,) = fake.maps
    assert [call[0].value, call[1].value, call[2].value] == [9, 2, 4096]
    assert [list(call[k]) for k in (3, 4, 5, 6)] == [[512, 256], [1024], [64, 128], [1, 1]] and call[8].value == 3


def test_another_architecture(fake: FakeCupy) -> None:
    f = gd.jit(lambda x: x + 1, target="cuda:1:sm_90", cache=False)
    with pytest.raises(GradirError) as caught:
        f(np.ones(4, np.float32))
    assert caught.value.code == "RT075" and "target=cuda:sm_80" in (caught.value.hint or "")


def test_without_cupy_a_gpu_or_that_gpu(fake: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GradirError) as caught:
        CupyDevice(2, fake.module, fake.libcuda)
    assert caught.value.code == "RT070" and "2 GPUs: cuda:0 to cuda:1" in caught.value.found
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(is_available=lambda: False))
    with pytest.raises(GradirError, match="no such GPU") as caught:
        load_cupy()
    assert "sees no GPU" in caught.value.found
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(GradirError) as caught:
        load_cupy()
    assert "cannot be imported" in caught.value.found and "pip install" in (caught.value.hint or "")
