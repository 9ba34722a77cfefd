"""The loops that measure the machine do what they say; the numbers keep their keys on the way to a file and back. Nothing is timed."""

from __future__ import annotations

import ctypes
import json

import numpy as np
import pytest

from gradir.dialects.target import CpuTargetAttr, host_target
from gradir.driver.limits import ACCUMULATORS, KINDS, Limits, Meter, limits_ir
from gradir.runtime.loader import load_object
from gradir.targets.cpu import compile_assembly, compile_object

FAMILY = {
    "x86-64": CpuTargetAttr.of("x86-64", vector=4, registers=16),
    "x86-64-v3": CpuTargetAttr.of("x86-64-v3", vector=8, registers=16),
    "x86-64-v4": CpuTargetAttr.of("x86-64-v4", vector=16, registers=32),
    "aarch64": CpuTargetAttr.of("generic", vector=4, registers=32, triple="aarch64-unknown-linux-gnu"),
}


@pytest.fixture(scope="module")
def library():
    return load_object(compile_object(limits_ir(host_target()), host_target()), ["fma_f32", "fma_f64", *KINDS])


def call(library, name: str, repeats: int, source: np.ndarray, destination: np.ndarray, count: int) -> None:
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(library.address(name))
    kernel(repeats, source.ctypes.data, destination.ctypes.data, count)


def aligned(count: int) -> np.ndarray:
    whole = np.zeros(count // 4 + 16, np.float32)
    start = -whole.ctypes.data % 64 // 4
    return whole[start : start + count // 4]


@pytest.mark.parametrize("kind", ["copy", "stream_copy"])
def test_copies_copy_every_byte_and_no_other(library, kind: str) -> None:
    source, destination = aligned(8192), aligned(8192)
    source[:] = np.arange(source.size)
    call(library, kind, 2, source, destination, 4096)
    np.testing.assert_array_equal(destination[:1024], source[:1024])
    assert not destination[1024:].any()


@pytest.mark.parametrize("kind", ["write", "stream_write"])
def test_writes_touch_every_byte_and_no_other(library, kind: str) -> None:
    destination = aligned(8192)
    destination[:] = 7
    call(library, kind, 1, destination, destination, 4096)
    assert not destination[:1024].any()
    assert (destination[1024:] == 7).all()


def test_reads_leave_memory_alone(library) -> None:
    source = aligned(4096)
    source[:] = 3
    call(library, "read", 3, source, source, 4096)
    assert (source == 3).all()


@pytest.mark.parametrize(("dtype", "name"), [(np.float32, "fma_f32"), (np.float64, "fma_f64")])
def test_fma_chains_compute_what_the_equation_says(library, dtype: type, name: str) -> None:
    out, x, y, acc = aligned(4096), dtype(1 - 2.0**-9), dtype(2.0**-10), dtype(1.0)
    call(library, name, 500, out, out, 0)
    for _ in range(500):
        acc = acc * x + y
    sums = ACCUMULATORS[32 if host_target().registers >= 32 else 16]
    np.testing.assert_allclose(out.view(dtype)[: 128 // out.view(dtype).itemsize // 4], sums * acc, rtol=1e-5)


@pytest.mark.parametrize("name", FAMILY)
def test_every_family_of_cpus_gets_its_own_registers(name: str) -> None:
    text = compile_assembly(limits_ir(FAMILY[name]), FAMILY[name])
    register, fma = {
        "x86-64": ("xmm", "mulps"),
        "x86-64-v3": ("ymm", "vfmadd"),
        "x86-64-v4": ("zmm", "vfmadd"),
        "aarch64": ("v0.4s", "fmla"),
    }[name]
    assert register in text
    assert fma in text


def test_non_temporal_stores_are_emitted_and_fenced() -> None:
    text = compile_assembly(limits_ir(FAMILY["x86-64-v3"]), FAMILY["x86-64-v3"])
    assert text.count("vmovntps") == 16  # two loops, eight stores each
    assert text.count("sfence") == 2


def test_limits_survive_json() -> None:
    made = Limits("cpu", 256, {"memory": 1}, {("f32", 1): 100.0}, {(kind, "memory", 1): 10.0 for kind in KINDS})
    assert Limits.from_json(json.loads(json.dumps(made.to_json()))) == made
    assert "100" not in str(made)  # the table is in GF/s
    assert str(made).count("memory") == len(KINDS)


def test_the_meter_reads_every_kind_of_traffic() -> None:
    meter = Meter(seconds=1e-5)
    assert meter.flops("f64", bursts=1) > 0
    assert all(meter.bandwidth(kind, "L1", threads=2, bursts=1) > 0 for kind in KINDS)
    assert meter.sizes()["L1"] * 2 == host_target().l1
