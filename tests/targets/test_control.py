"""Loops and branches that carry memrefs of run-time shape: LLVM wants all phis of a block before what is computed from them."""

from __future__ import annotations

import pytest

from gradir.dialects.target import CpuTargetAttr
from gradir.ir.text import parse_module, verify_module
from gradir.targets.cpu import compile_object
from gradir.targets.llvm.module import translate

KIND = "memref<3x?xf64>"
LOOP = f"""
func.func @f(%a: {KIND}, %b: {KIND}, %n: index) {{
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %c, %d = scf.for %i = %0 to %n step %1 iter_args(%x = %a, %y = %b) -> ({KIND}, {KIND}) {{
    scf.yield %y, %x : {KIND}, {KIND}
  }}
  %v = memref.load %c[%1, %0] : {KIND}
  memref.store %v, %d[%1, %0] : {KIND}
  return
}}
"""
BRANCH = f"""
func.func @f(%a: {KIND}, %b: {KIND}, %p: i1) {{
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %c, %d = scf.if %p -> ({KIND}, {KIND}) {{
    scf.yield %a, %b : {KIND}, {KIND}
  }} else {{
    scf.yield %b, %a : {KIND}, {KIND}
  }}
  %v = memref.load %c[%1, %0] : {KIND}
  memref.store %v, %d[%1, %0] : {KIND}
  return
}}
"""


@pytest.mark.parametrize("text", [LOOP, BRANCH], ids=["for", "if"])
def test_carried_memrefs_of_run_time_shape(text: str) -> None:
    module = parse_module(text)
    verify_module(module)
    target = CpuTargetAttr.of("x86-64")
    assert compile_object(translate(module, target=target).text, target)
