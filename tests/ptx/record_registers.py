"""`python -m tests.ptx.record_registers`: writes `tests/targets/gpu_registers.json` anew. Look at the difference before committing it."""

from __future__ import annotations

import json

from tests.ptx.emulated import ARCHITECTURES, RECORDED, assembled
from tests.targets.gpu_programs import sample


def main() -> None:
    found = {
        arch: {
            program: {kernel: [report.registers, report.shared] for kernel, report in kernels.items()}
            for program, kernels in assembled(tuple(sample()), arch).items()
        }
        for arch in ARCHITECTURES
    }
    lines = [
        f'  "{arch}": {{\n' + ",\n".join(f'    "{p}": {json.dumps(k)}' for p, k in programs.items()) + "\n  }"
        for arch, programs in found.items()
    ]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
