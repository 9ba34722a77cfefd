"""Upstream's `mlir-opt` accepts level 2 as we print it, before and after outlining, for every sample of every op."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from gradir.dialects import nd
from gradir.dialects.upstream import func
from gradir.ir.builder import Builder, new_function
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, print_module
from gradir.lowering.convert_nd_to_linalg import ConvertNdToLinalg
from gradir.lowering.f8_to_bits import F8ToBits
from gradir.lowering.fuse import Fuse
from gradir.lowering.name_sizes import NameSizes
from gradir.lowering.nd_expand import NdExpand
from gradir.lowering.order_kernels import OrderKernels
from gradir.lowering.outline_kernels import OutlineKernels
from gradir.lowering.split_complex import SplitComplex
from gradir.reference import run

ALLOWED = {"builtin", "func", "cf", "scf", "arith", "math", "tensor", "linalg", "affine"}
MLIR_OPT = shutil.which("mlir-opt-22")


@pytest.mark.skipif(MLIR_OPT is None, reason="mlir-opt-22 is not installed")
def test_mlir_opt_accepts_level_2() -> None:
    texts: list[str] = []
    for op in nd.Nd.operations:
        for sample in op.samples():  # type: ignore[attr-defined]
            module = parse_module(sample.text)
            for stage in (
                (NameSizes(), NdExpand(), SplitComplex(), F8ToBits(), ConvertNdToLinalg()),
                (Fuse(), OutlineKernels(), OrderKernels()),
            ):
                for each in stage:
                    each.apply(module, PassContext())
                assert {inner.dialect_name() for inner in module.walk()} <= ALLOWED
                texts.append(f"// {op.name}: {sample.name}\n{print_module(module)}")
    command = [str(MLIR_OPT), "--allow-unregistered-dialect", "--verify-each", "--split-input-file", "-"]
    result = subprocess.run(command, input="\n// -----\n".join(texts), text=True, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr[:2000]


@pytest.mark.skipif(MLIR_OPT is None, reason="mlir-opt-22 is not installed")
@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.uint8])
def test_large_constants_are_bytes_that_mlir_opt_reads(dtype: type[np.generic]) -> None:
    array = (np.arange(400) % 3 == 0).astype(dtype)
    block = Block()
    block.add_op(nd.ConstantOp.make(array))
    constant = block.first_op
    assert constant is not None
    Builder(block)(func.ReturnOp, constant.results)
    module = ModuleOp([new_function("f", block, [constant.results[0].type])])
    ConvertNdToLinalg().apply(module, PassContext())
    text = print_module(module)
    result = subprocess.run([str(MLIR_OPT), "-"], input=text, text=True, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr[:2000]
    (found,) = run(parse_module(text), "f", [])
    np.testing.assert_array_equal(found.view(array.dtype), array)
