"""The emulated device: nothing runs before somebody waits, memory is counted and limited, what goes wrong is named."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError
from gradir.ptx.launch import DeviceBuffer
from gradir.runtime import abi
from gradir.runtime.cuda.array import DeviceArray, put
from gradir.runtime.cuda.emulated import EmulatedDevice, EmulatedStream, extent
from gradir.runtime.cuda.pool import rounded
from gradir.runtime.cuda.spec import KernelSpec, ParameterSpec

X = np.arange(12, dtype=np.float32).reshape(3, 4)
TARGET = "cuda:emulated"


@pytest.fixture
def device() -> EmulatedDevice:
    return EmulatedDevice(memory=1 << 20)


def test_a_call_returns_before_its_kernels_ran() -> None:
    f = gd.jit(lambda x: x + 1, target=TARGET)
    device = gd.device(TARGET)
    x = gd.device_put(X, TARGET)
    x.synchronize()
    stream: Any = device.current_stream()
    finished, waits = stream.finished, device.synchronisations
    y = f(f(x))
    assert stream.finished == finished and device.synchronisations == waits
    assert y.shape == (3, 4) and y.dtype == np.float32 and "3x4xf32" in repr(y)
    assert stream.finished == finished and device.synchronisations == waits
    np.testing.assert_array_equal(np.asarray(y), X + 2)
    assert stream.finished > finished and device.synchronisations == waits + 1


def test_arguments_of_the_host_may_change_when_the_call_has_returned() -> None:
    x = X.copy()
    y = gd.jit(lambda x: x * 2, target=TARGET)(x)
    x[:] = 0
    np.testing.assert_array_equal(np.asarray(y), 2 * X)


def test_arguments_in_the_middle_of_memory_are_copied_to_an_aligned_place() -> None:
    """Kernels read 16 bytes at a time; an array of another library may start anywhere."""
    whole = gd.device_put(np.arange(260, dtype=np.float32), TARGET)
    part = DeviceArray(whole.device, whole.address + 4, (256,), "f32", whole, whole.stream)
    function = gd.compile(lambda x: x * 2, gd.Spec((256,)), target=TARGET).function
    addresses: list[int] = []
    kept = function._words
    function._words = lambda arrays, results: addresses.append(arrays[0].address) or kept(arrays, results)  # type: ignore[method-assign]
    np.testing.assert_array_equal(np.asarray(function(part)), np.arange(1, 257) * 2)
    assert part.address % 16 == 4 and all(address % 16 == 0 for address in addresses)


def test_values_come_when_they_are_read() -> None:
    y = gd.jit(lambda x: gd.sum(x), target=TARGET)(X)
    assert float(y) == int(y) == y.item() == X.sum() and bool(y) and y < 100 and y + 1 == X.sum() + 1
    z = gd.device_put(X, TARGET)
    assert len(z) == 3 and z[1, 2] == X[1, 2] and [list(row) for row in z] == X.tolist() and z.nbytes == 48
    np.testing.assert_array_equal(np.add(z, z), 2 * X)
    np.testing.assert_array_equal(np.from_dlpack(z), X)
    with pytest.raises(AttributeError):
        _ = z.__cuda_array_interface__
    assert gd.device_put(z, TARGET) is z


def test_streams_wait_for_each_other_through_events(device: EmulatedDevice) -> None:
    first, second = device.new_stream(), device.new_stream()
    a = put(X, device, "a")
    second.wait(first.record())
    block = device.pool.take(48, first, "b")
    device.copy_within(block.address, a.use_on(first), 48, first)
    device.copy_within(a.address, block.address, 48, first)
    b = DeviceArray(device, block.address, (3, 4), "f32", block, first)
    assert b.use_on(second) == block.address  # the second stream waits for the first, the host for nobody
    assert device.synchronisations == 0
    start = second.record()
    np.testing.assert_array_equal(b.numpy(), X)
    end = second.record()
    end.synchronize()
    assert start.done() and end.milliseconds_since(start) >= 0 and device.synchronisations == 2


def test_work_of_one_stream_stays_in_order_and_the_queue_is_bounded(device: EmulatedDevice) -> None:
    stream, seen = device.new_stream(), list[int]()
    assert isinstance(stream, EmulatedStream)
    for k in range(5000):
        stream.add(lambda k=k: seen.append(k))
    assert 0 < len(seen) < 5000 and device.synchronisations == 0
    stream.synchronize()
    assert seen == [*range(5000)]


def test_memory_is_reused_on_its_stream_at_once_and_elsewhere_after_a_wait(device: EmulatedDevice) -> None:
    one, two = device.new_stream(), device.new_stream()
    first = device.pool.take(1000, one, "a")
    address = first.address
    del first
    second = device.pool.take(1000, two, "b")
    assert second.address != address
    third = device.pool.take(1000, one, "c")
    assert third.address == address
    figures = device.pool.statistics()
    assert (figures.taken, figures.reused, figures.live_bytes, figures.cached_bytes) == (3, 1, 2048, 0)
    del second
    gc.collect()
    device.pool.trim()
    assert device.pool.statistics().cached_bytes == 0 and device.synchronisations == 1


def test_blocks_have_few_sizes() -> None:
    assert [rounded(n) for n in (0, 1, 512, 513, 1 << 20, (1 << 20) + 1)] == [512, 512, 512, 1024, 1 << 20, (1 << 20) + (1 << 17)]


def test_out_of_memory_lists_what_is_in_use_by_source_line(device: EmulatedDevice) -> None:
    stream = device.current_stream()
    kept = [device.pool.take(300_000, stream, "'y' of @f, model.py:7") for _ in range(2)]
    with pytest.raises(GradirError) as caught:
        device.pool.take(600_000, stream, "arena of @g, model.py:9")
    error = caught.value
    assert error.code == "RT071" and "arena of @g, model.py:9" in error.expected
    assert "'y' of @f, model.py:7" in error.found and "586.0 KB" in error.found
    device.pool.set_limit(700_000)
    with pytest.raises(GradirError, match="out of memory") as caught:
        device.pool.take(100_000, stream, "h")
    assert "a limit of 700000 bytes" in caught.value.expected
    del kept, caught, error
    gc.collect()
    assert device.pool.take(600_000, stream, "arena of @g, model.py:9").bytes >= 600_000  # cached blocks are given back for it


def test_buffers_of_a_program_carry_the_line_of_the_call() -> None:
    pool = gd.device(TARGET).pool
    y = gd.jit(lambda x: x - 1, target=TARGET)(X)
    assert any("result0" in what and "test_emulated_device.py" in what for what, _ in pool.live()), pool.live()
    del y


def test_memory_that_nobody_wrote_and_memory_that_is_gone(device: EmulatedDevice) -> None:
    block = device.pool.take(64, device.current_stream(), "a")
    device.synchronize_all()
    assert not device._regions.find(block.address, 64)[1].any()
    with pytest.raises(GradirError) as caught:
        device.copy_out(np.empty(1, np.float32), block.address + (1 << 21), device.current_stream())
    assert caught.value.code == "RT072"


def test_a_tensor_map_that_is_made_again_is_the_same(device: EmulatedDevice) -> None:
    words = [abi.ELEMENT_CODES["f32"], 2, 64, 8, 256, 32, 8, 128]
    first, other = device.tensor_map(4096, words), device.tensor_map(8192, words)
    assert first != other and device.tensor_map(4096, words) == first and len(device._maps) == 2


@pytest.mark.parametrize("limit", [-1, "x", 1.5, True])
def test_limits_that_are_none(device: EmulatedDevice, limit: Any) -> None:
    with pytest.raises(GradirError) as caught:
        device.pool.set_limit(limit)
    assert (caught.value.code, caught.value.found) == ("RT017", repr(limit))


BROKEN = """.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [p];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, 1;
  st.global.u32 [%rd2+64], %r1;
  ret;
}
"""


def test_what_a_kernel_does_wrong_is_named_at_the_next_wait() -> None:
    compiled = gd.compile(lambda x: x + 1, gd.Spec((4,)), target=TARGET, cache=False)
    module = compiled.module
    device = module.manifest.device
    assert device is not None
    name = device.kernels[0].name
    objects = list(module.objects)
    words = ", ".join(f".param .b{8 * p.bytes} p{k}" for k, p in enumerate(device.kernels[0].parameters))
    text = (
        BROKEN.replace(".param .u64 p)", words.replace(".b64", ".u64") + ")").replace("[p]", "[p0]").replace("entry k(", f"entry {name}(")
    )
    objects[device.ptx] = text.encode()
    broken = type(module)(module.manifest, objects, TARGET)
    y = broken[compiled.name](np.zeros(4, np.float32))
    with pytest.raises(GradirError) as caught:
        y.numpy()
    error = caught.value
    assert error.code == "RT073" and f"@{name}" in error.message and "test_emulated_device.py" in error.location
    assert "of 16 bytes" in error.found or "out of bounds" in error.found
    np.testing.assert_array_equal(compiled(np.ones(4, np.float32)).numpy(), np.full(4, 2, np.float32))  # the device goes on


def test_a_launch_that_the_device_refuses_is_named() -> None:
    compiled = gd.compile(lambda x: x + 1, gd.Spec((4,)), target=TARGET)
    device: Any = gd.device(TARGET)
    program = compiled.function.program
    numbers, kept = program._functions, list(program._functions)
    ctypes.memset(numbers, 0, ctypes.sizeof(numbers))
    try:
        with pytest.raises(GradirError) as caught:
            compiled(np.zeros(4, np.float32))
    finally:
        for k, number in enumerate(kept):
            numbers[k] = number
    assert caught.value.code == "RT074" and "launch of @" in caught.value.message and "test_emulated_device.py" in caught.value.location
    assert "invalid value" in caught.value.found and device.describe_status(5) == "5"


def test_a_call_that_comes_again_is_one_graph() -> None:
    def several(x: Any) -> Any:
        return gd.softmax(gd.matmul(gd.softmax(gd.matmul(x, x)), x))

    f = gd.jit(several, target=TARGET, donate=(0,))
    device = gd.device(TARGET)
    square = np.random.default_rng(0).random((4, 4), np.float32)
    wanted = square
    x = gd.device_put(square, TARGET)
    counts: list[tuple[int, int]] = []
    for _ in range(4):
        before = device.graph_launches, device.launches
        x, wanted = f(x), gd.jit(several)(wanted)
        counts.append((device.graph_launches - before[0], device.launches - before[1]))
        np.testing.assert_allclose(x.numpy(), wanted, rtol=1e-5)
    assert counts[0][0] == 0 and counts[0][1] >= 3
    assert counts[-1] == (1, 0), counts


def test_the_extent_of_a_parameter() -> None:
    assert extent(ParameterSpec(8, 4, (3, 4)), []) == (0, 48)
    assert extent(ParameterSpec(8, 4, (None, 4), (None, 1)), [3, 10]) == (0, 4 * (20 + 3 + 1))
    assert extent(ParameterSpec(8, 2, (None,), (None,)), [3, -2]) == (-8, 2)
    assert extent(ParameterSpec(8, 4, (0, 4)), []) == (0, 0)
    assert extent(ParameterSpec(8, 4, ()), []) == (0, 4)


def test_a_real_gpu_is_missing_with_an_explanation() -> None:
    for name in ("cuda:77", "cpu", "cuda:x"):
        with pytest.raises(GradirError) as caught:
            gd.device_put(X, name)
        assert caught.value.code == "RT070"


def test_a_tensor_map_is_that_of_the_emulator(device: EmulatedDevice) -> None:
    array = put(np.arange(8 * 64, dtype=np.float32).reshape(8, 64), device, "a")
    words = [abi.ELEMENT_CODES["f32"], 2, 64, 8, 256, 32, 4, 128]
    made = device.tensor_map(array.address, words)
    assert len(made) == abi.TENSOR_MAP_BYTES
    device.synchronize_all()
    kernel = KernelSpec("k", (ParameterSpec(abi.TENSOR_MAP_BYTES), ParameterSpec(4)))
    found, number = device._arguments(kernel, [made, b"abcd"], DeviceBuffer)
    assert (found.shape, found.strides, found.box, found.swizzle, found.extent) == ((64, 8), (256,), (32, 4), 128, 2048)
    np.testing.assert_array_equal(found.base.data.view(np.float32), np.arange(8 * 64))
    assert number == b"abcd" and found.base.written.all()


@pytest.mark.parametrize("target", [None, 3])
def test_a_device_that_is_no_name(target: Any) -> None:
    with pytest.raises(GradirError, match="OP041"):
        gd.device(target)


def test_out_that_is_read_only_is_refused_before_anything_runs() -> None:
    out = np.zeros((3, 4), np.float32)
    out.flags.writeable = False
    compiled = gd.compile(lambda x: x + 1, X, target=TARGET)
    with pytest.raises(GradirError, match="read-only") as caught:
        compiled(X, out=out)
    assert caught.value.code == "RT006"


@pytest.mark.parametrize(("dtype", "architecture"), [(np.int8, "sm_80"), (np.int16, "sm_90a"), (np.uint16, "sm_90")])
def test_products_of_narrow_integers_with_a_depth_of_one(dtype: Any, architecture: str) -> None:
    x, y = np.arange(-16, 17).astype(dtype)[:, None], np.arange(1, 41).astype(dtype)[None]
    found = gd.jit(lambda x, y: x @ y, target=f"{TARGET}:{architecture}")(x, y)
    np.testing.assert_array_equal(found.numpy(), x * y)
