"""`python -m gradir.targets.worker`: LLVM in a process of its own, because its NVPTX back end may abort on bad input.

Reads one JSON object {"text", "arch"} from standard input and writes PTX to standard output; errors go to standard error, exit code 1.
"""

from __future__ import annotations

import json
import sys

import llvmlite.binding as llvm

TRIPLE = "nvptx64-nvidia-cuda"


def generate(text: str, arch: str) -> str:
    """PTX of LLVM IR text. Raises RuntimeError for text that LLVM rejects."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(text)
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=arch, opt=3)
    module.data_layout = str(machine.target_data)
    module.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)
    return str(machine.emit_assembly(module))


def main() -> int:
    request = json.load(sys.stdin)
    try:
        sys.stdout.write(generate(request["text"], request["arch"]))
    except RuntimeError as error:
        sys.stderr.write(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
