"""`python -m gradir.tools.docs_architecture [FILE]`: fills in the generated sections of docs/architecture.md.

The page itself is written by hand. Between `<!-- begin NAME -->` and `<!-- end NAME -->` stand the road as a table, and
examples/layer.mlir at every level, as the passes really print it for one fixed machine.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path

from gradir.dialects.target import TARGET_ATTRIBUTE, CpuTargetAttr
from gradir.driver.lower import lower
from gradir.driver.pipelines import BEFORE_AD, ROAD, Step
from gradir.ir.text import parse_module, print_module
from gradir.targets.translate import to_llvm_ir
from gradir.tools.docs_page import write_page

TARGET = Path("docs/architecture.md")
LAYER = Path("examples/layer.mlir")
MACHINE = CpuTargetAttr.of("znver3", vector=8, registers=16, threads=2)

EXCERPT = 44
"""Lines of LLVM IR that are shown: the packing loop and the micro-kernel's loads."""


def page() -> str:
    """The text of docs/architecture.md with its generated sections made anew."""
    text = TARGET.read_text(encoding="utf-8")
    for name, body in (("road", road_table()), ("layer", layer_sections())):
        section = re.compile(rf"(?<=<!-- begin {name} -->\n).*?(?=<!-- end {name} -->)", re.S)
        text, count = section.subn(lambda _, body=body: f"\n{body}\n", text)
        if count != 1:
            raise ValueError(f"{TARGET}: expected one section '{name}', found {count}")
    return text


def road_table() -> str:
    """Every pass of the road with its levels and the reason for its place."""
    lines = ["| stage | pass | level | why here |", "|---|---|---|---|"]
    lines += [_row("tensor, where `ad` requests are", step) for step in BEFORE_AD]
    lines += [_row(step.stage, step) for step in ROAD]
    return "\n".join(lines) + "\n"


def _row(stage: str, step: Step) -> str:
    levels = str(step.level_in) if step.level_in == step.level_out else f"{step.level_in} to {step.level_out}"
    return f"| {stage} | [{step.pass_name}](passes.md#{step.pass_name}) | {levels} | {step.why} |"


def layer_sections() -> str:
    """The layer at every level, each with the command that prints it."""
    source = [line for line in LAYER.read_text(encoding="utf-8").splitlines() if line and not line.startswith("//")]
    module = parse_module("\n".join(source))
    module.attributes[TARGET_ATTRIBUTE] = MACHINE
    parts = [_part("1, tensor: what it means", str(LAYER), source)]
    titles = {
        "structured": "2, structured: one kernel, in destination-passing style, with its schedule",
        "buffers": "3, buffers: no tensor is left; `%0` of the entry is the result",
        "loops": "4, loops: a register tile of 6 x 16 over packed panels of `w`, and its remainder",
    }
    for stage, title in titles.items():
        module = lower(module, last=stage)
        parts.append(_part(f"{title}", f"-p {_pipelines(stage)}", print_module(module).splitlines()))
    text = to_llvm_ir(module).splitlines()
    parts.append(_part("5, target: LLVM IR (its beginning)", "gradir-translate --to=llvm-ir", [*text[:EXCERPT], "  ..."], "llvm"))
    return "\n".join(parts)


def _pipelines(last: str) -> str:
    names = {"structured": "to-structured{target=cpu}", "buffers": "to-buffers", "loops": "to-loops"}
    return ",".join([*takewhile(lambda name: name != names[last], names.values()), names[last]])


def _part(title: str, command: str, lines: Iterable[str], language: str = "mlir") -> str:
    return f"**Level {title}** (`{command}`)\n\n" + "\n".join([f"```{language}", *lines, "```", ""])


def main(arguments: Sequence[str]) -> int:
    """Write the page to the file named first, docs/architecture.md by default; run from the root of the repository."""
    return write_page(page(), arguments, TARGET)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
