"""Kernels whose operands are tensor maps, launched by compiled host code on the emulated device."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradir.dialects.target import host_target
from gradir.driver.build_cuda import cuda_objects
from gradir.driver.report import CompileReport
from gradir.errors import GradirError
from gradir.ir.text import parse_module
from gradir.runtime import abi
from gradir.runtime.cuda.array import put
from gradir.runtime.cuda.emulated import EmulatedDevice
from gradir.runtime.cuda.program import DeviceProgram
from gradir.runtime.library.table import LibraryTable
from gradir.runtime.loader import load_object
from gradir.targets.llvm.device_host import translate_host
from gradir.targets.nvptx import cuda_target
from tests.targets.wgmma_kernels import SHARED, gemm


@pytest.mark.parametrize("turned_b", [False, True])
def test_host_code_describes_its_operands(turned_b: bool) -> None:
    m, n, k = 136, 72, 200
    module = parse_module(gemm(m, n, k, turned_b=turned_b))
    objects, spec, _ = cuda_objects(module, cuda_target(module), CompileReport(), emulated=True)
    (kernel,) = spec.kernels
    assert [p.bytes for p in kernel.parameters] == [abi.TENSOR_MAP_BYTES] * 3
    assert kernel.dynamic_shared == SHARED
    device = EmulatedDevice(arch="sm_90a")
    random = np.random.default_rng(5)
    a, b = (random.standard_normal((rows, k)).astype(ml_dtypes.bfloat16) for rows in (m, n))
    c = np.full((m, n), np.nan, np.float32)
    arrays = [put(x, device, "x") for x in (a, np.ascontiguousarray(b.T) if turned_b else b, c)]
    program = DeviceProgram(device, spec, objects, [], LibraryTable(()))
    library = load_object(objects[0], ["f.packed"])
    stream: Any = device.current_stream()
    for _ in range(2):  # a second call describes them again
        outcome = program.run(library.address("f.packed"), [x.address for x in arrays], "f", stream, 1, 0)
        assert (outcome.status, outcome.launches) == (0, 1)
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(np.asarray(arrays[2]), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("%ua box[%rows, %depth]", "%ua box[%half, %depth]", "expected: a box of [128, 64]"),
        ("%ua box[%rows, %depth]", "%ua box[%rows]", "found: [128]"),
        ("oob = zero", "oob = nan", "expected: zeros outside of the tensor"),
        (
            "swizzle = none, l2promo = none, oob = zero, interleave = none",
            "swizzle = none, l2promo = none, oob = zero, interleave = interleave_16b",
            "expected: no interleaving",
        ),
        (
            "memref.cast %c : memref<128x128xf32>",
            "memref.cast %turned : memref<128x128xf32, strided<[1, 128]>>",
            "expected: elements side by side",
        ),
    ],
)
def test_maps_that_host_code_cannot_make(old: str, new: str, message: str) -> None:
    text = gemm(128, 128, 64).replace(
        "    %ua =",
        "    %turned = memref.reinterpret_cast %c to offset: [0], sizes: [128, 128], strides: [1, 128] "
        ": memref<128x128xf32> to memref<128x128xf32, strided<[1, 128]>>\n    %ua =",
    )
    assert old in text
    text = text.replace(old, new)
    with pytest.raises(GradirError) as caught:
        translate_host(parse_module(text), host_target())
    assert caught.value.code == "OP040"
    assert message in str(caught.value)
