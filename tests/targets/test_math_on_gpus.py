"""Math ops on GPUs: LLVM's back end ends the process on those that it has no code for, so each is expanded or on the list of safe ones."""

from __future__ import annotations

import inspect
import re

import pytest
from xdsl.irdl import IRDLOperation

from gradir.dialects.target import CudaTargetAttr
from gradir.dialects.upstream import math
from gradir.lowering.expand_math.expansion import NATIVE, expansions_for
from gradir.targets.nvptx import compile_ptx

SM80 = CudaTargetAttr.of("sm_80")
INTRINSICS = {"absf": "fabs", "roundeven": "roundeven", "absi": "abs"}
WHOLE = {"absi", "ctlz", "cttz", "ctpop"}
FLAGGED = {"absi", "ctlz", "cttz"}
REFUSED = {"math.clampf"}
"""Made by no lowering; `expand-math` refuses it before LLVM sees it (OP040)."""
ARGUMENTS = {"fma": 3, "copysign": 2}


def math_ops() -> set[str]:
    return {
        c.name
        for _, c in inspect.getmembers(math, inspect.isclass)
        if issubclass(c, IRDLOperation) and c.__dict__.get("name", "").startswith("math.")
    }


def test_every_op_is_expanded_or_safe() -> None:
    assert math_ops() > NATIVE
    assert math_ops() - NATIVE - set(expansions_for(SM80)) == REFUSED


@pytest.mark.parametrize("bits", [32, 64])
def test_safe_ops_have_code(bits: int) -> None:
    """All of them in one function; a call that has no code would end the worker, or leave an external symbol."""
    lines: list[str] = []
    for number, op in enumerate(sorted(NATIVE)):
        name = op.removeprefix("math.")
        whole = name in WHOLE
        t, suffix = (f"i{bits}", f"i{bits}") if whole else ({32: "float", 64: "double"}[bits], f"f{bits}")
        given = ", ".join([f"{t} %x{number}"] * ARGUMENTS.get(name, 1) + (["i1 false"] if name in FLAGGED else []))
        lines.append(f"  %p{number} = getelementptr {t}, ptr addrspace(1) %p, i64 {number}")
        lines.append(f"  %x{number} = load {t}, ptr addrspace(1) %p{number}")
        lines.append(f"  %y{number} = call {t} @llvm.{INTRINSICS.get(name, name)}.{suffix}({given})")
        lines.append(f"  store {t} %y{number}, ptr addrspace(1) %p{number}")
    ptx = compile_ptx("define ptx_kernel void @k(ptr addrspace(1) %p) {\n" + "\n".join(lines) + "\n  ret void\n}\n", SM80)
    assert ".extern" not in ptx and not re.search(r"\bcall\b", ptx)
