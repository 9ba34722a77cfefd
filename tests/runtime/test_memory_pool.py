"""The memory pool: alignment, reuse, statistics, limits, what compiled code takes from it; buffers."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError
from gradir.runtime import Buffer, memory
from tests.runtime import compiled_programs as programs


@pytest.fixture(autouse=True)
def fresh_pool():
    memory.trim()
    yield
    memory.set_cache_limit(1 << 30)
    memory.trim()


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 65, 72, 73, 127, 128, 129, 1000, 4096, 1 << 20, (1 << 20) + 1])
def test_blocks_are_aligned_large_enough_and_waste_an_eighth(nbytes):
    before = memory.statistics().live_bytes
    address = memory.allocate(nbytes)
    size = memory.statistics().live_bytes - before
    memory.release(address)
    assert address % 64 == 0 and max(64, nbytes) <= size <= max(64, nbytes) * 1.125 + 1
    assert memory.statistics().live_bytes == before


def test_neighbouring_blocks_do_not_overlap():
    blocks = [memory.Block(100) for _ in range(50)]
    for index, block in enumerate(blocks):
        np.asarray(block)[:] = index
    assert all((np.asarray(block) == index).all() for index, block in enumerate(blocks))


def test_released_blocks_are_reused():
    first = memory.allocate(5000)
    memory.release(first)
    before = memory.statistics()
    assert before.cached_bytes >= 5000
    second = memory.allocate(5000)
    after = memory.statistics()
    memory.release(second)
    assert second == first and after.reused == before.reused + 1 and after.cached_bytes < before.cached_bytes


def test_peak():
    memory.reset_peak()
    base = memory.statistics().live_bytes
    blocks = [memory.allocate(1 << 16) for _ in range(3)]
    for block in blocks:
        memory.release(block)
    assert memory.statistics().peak_bytes == base + 3 * (1 << 16)
    memory.reset_peak()
    assert memory.statistics().peak_bytes == base


def test_cache_limit_and_trim():
    memory.set_cache_limit(1 << 16)
    memory.release(memory.allocate(1 << 20))
    assert memory.statistics().cached_bytes == 0
    memory.release(memory.allocate(1 << 15))
    assert memory.statistics().cached_bytes == 1 << 15
    memory.trim()
    assert memory.statistics().cached_bytes == 0
    with pytest.raises(GradirError) as caught:
        memory.set_cache_limit(-1)
    assert caught.value.code == "RT017" and caught.value.found == "-1"


def test_too_much():
    with pytest.raises(MemoryError, match="no block of"):
        memory.allocate(1 << 59)
    with pytest.raises(MemoryError):
        memory.allocate(-1)


def huge_bytes(address: int) -> int:
    """Bytes in huge pages of the mapping that contains `address`, by the kernel's account."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split()[0]
        if "-" in head and not head.endswith(":"):
            low, high = (int(part, 16) for part in head.split("-"))
            inside = low <= address < high
        elif inside and head == "AnonHugePages:":
            return int(line.split()[1]) << 10
    return 0


def test_large_blocks_are_aligned_for_huge_pages():
    small, large = memory.Block(1 << 20), memory.Block(24 << 20)
    assert (large.address - 64) % (2 << 20) == 0
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if setting.exists() and "[never]" not in setting.read_text():
        np.asarray(large)[:] = 1
        assert huge_bytes(large.address) >= 16 << 20  # the system may be short of some
    assert small.address % 64 == 0


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space of a child")
def test_under_pressure_cached_blocks_go_back_to_the_system():
    """In a child with little address space left: a request that fails gives back what is cached, and is tried again."""
    code = """
import resource
from gradir.runtime import memory
memory.release(memory.allocate(600 << 20))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20), used + (200 << 20)))
block = memory.allocate(500 << 20)
print(memory.statistics().cached_bytes, memory.statistics().live_bytes >= 500 << 20)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "True"]


def test_calls_in_several_threads_have_arenas_of_their_own():
    """Each thread writes its own numbers through the same function at the same time."""
    function = gd.jit(lambda x, w: gd.tanh(gd.tanh(x @ w) @ w) @ w, cache=False)
    w = np.eye(64, dtype=np.float32)
    inputs = [np.full((256, 64), k / 8, np.float32) for k in range(6)]
    expected = [function(x, w) for x in inputs]
    wrong: list[int] = []

    def work(k: int) -> None:
        wrong.extend(k for _ in range(40) if not np.array_equal(function(inputs[k], w), expected[k]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_outputs_and_arenas_return_to_the_pool():
    function = programs.twice()["twice"]
    x = np.ones((100, 3), np.float32)
    function(x)
    base = memory.statistics()
    for _ in range(10):
        kept = function(x)
    after = memory.statistics()
    assert after.reused - base.reused >= 27 and after.cached_bytes <= base.cached_bytes
    assert after.live_bytes == base.live_bytes + 1280 + 64  # both results of the last call, rounded
    del kept
    assert memory.statistics().live_bytes == base.live_bytes


def test_failed_calls_return_everything():
    function = programs.check()["check"]
    function(1)
    base = memory.statistics().live_bytes
    for value in (-1, 500):
        with pytest.raises(GradirError):
            function(np.array(value))
    assert memory.statistics().live_bytes == base


def test_compiled_code_allocates_from_the_pool():
    borrow = programs.module(programs.ALLOCATE, programs.ALLOCATE_SPEC)["borrow"]
    memory.reset_peak()
    before = memory.statistics()
    assert borrow(1 << 20) == 1 << 20
    after = memory.statistics()
    assert after.peak_bytes - before.live_bytes >= 1 << 20 and after.live_bytes == before.live_bytes
    with pytest.raises(GradirError, match="out of memory"):
        borrow(1 << 62)


def test_buffer():
    buffer = Buffer((2, 3), "f64")
    assert buffer.shape == (2, 3) and buffer.dtype == "f64" and buffer.nbytes == 48 and buffer.address % 64 == 0
    buffer.numpy()[...] = 7
    assert np.asarray(buffer).base is not None and (np.asarray(buffer) == 7).all() and np.shares_memory(np.asarray(buffer), buffer.numpy())
    assert np.array(buffer, dtype=np.float32).dtype == np.float32 and not np.shares_memory(np.array(buffer, copy=True), buffer.numpy())
    assert np.shares_memory(np.from_dlpack(buffer), buffer.numpy()) and buffer.__dlpack_device__() == (1, 0)
    assert "2x3xf64" in repr(buffer) and memoryview(buffer.__buffer__(0)).shape == (2, 3)


def test_buffer_copies_its_source():
    source = np.arange(6, dtype=np.int32).reshape(2, 3)[:, ::-1]
    buffer = Buffer.from_array(source)
    assert buffer.dtype == "i32" and np.array_equal(buffer.numpy(), source) and not np.shares_memory(buffer.numpy(), source)
    assert np.array_equal(Buffer.from_array(buffer).numpy(), source)


def test_a_view_keeps_the_memory_of_its_buffer():
    base = memory.statistics().live_bytes
    view = Buffer((1000,), "f32").numpy()[10:]
    assert memory.statistics().live_bytes > base
    del view
    assert memory.statistics().live_bytes == base
