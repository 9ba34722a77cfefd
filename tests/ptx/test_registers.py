"""What `ptxas` makes of the kernels of the sample: no spills, no more registers and shared memory than recorded."""

from __future__ import annotations

import pytest

from tests.ptx.emulated import assembled, recorded
from tests.targets.assembler import needs_ptxas
from tests.targets.gpu_programs import sample

SLACK = 8
"""Registers that another version of ptxas may take more."""


@needs_ptxas
@pytest.mark.parametrize("arch", ["sm_90a", *(pytest.param(arch, marks=pytest.mark.full) for arch in ("sm_80", "sm_90", "sm_100a"))])
def test_kernels_need_no_more_than_recorded(arch: str) -> None:
    known = recorded()[arch]
    wrong: list[str] = []
    for program, kernels in assembled(tuple(sample()), arch).items():
        wrong += [f"{program}: {kernel} spills {report.spills} bytes" for kernel, report in kernels.items() if report.spills]
        if set(kernels) != set(known.get(program, {})):
            wrong.append(f"{program}: kernels {sorted(kernels)}, recorded {sorted(known.get(program, {}))}")
            continue
        for kernel, report in kernels.items():
            registers, shared = known[program][kernel]
            if report.registers > registers + SLACK or report.shared > shared:
                wrong.append(
                    f"{program}: {kernel} takes {report.registers} registers and {report.shared} bytes, recorded {registers} and {shared}"
                )
    assert not wrong, "\n".join([*wrong, "if that is meant: python -m tests.ptx.record_registers"])
