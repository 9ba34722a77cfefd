"""`python -m gradir.tools.docs_autodiff [FILE]`: fills in the examples of docs/autodiff.md.

The page is written by hand. Between `<!-- begin example NAME -->` and `<!-- end example NAME -->` stands examples/autodiff/NAME.mlir before
and after its own command line. `<!-- begin example NAME: @f, @g -->` chooses the functions that are shown after; without a choice they are
those that the passes made. Every example of the folder is on the page. In `<!-- begin residuals NAME -->` stands what `--report-residuals`
says of one.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from gradir.tools import opt
from gradir.tools.docs_page import write_page

TARGET = Path("docs/autodiff.md")
FOLDER = Path("examples/autodiff")

_SECTION = re.compile(r"(<!-- begin (example|residuals) ([\w-]+)(?:: ([^>]*?))? -->\n).*?(<!-- end \2 \3 -->)", re.S)
_FUNCTION = re.compile(r"^( *)func\.func (?:private )?(@[\w.]+)\(.*?^\1}\n", re.M | re.S)
_NUMBER = re.compile(r"-?\d+\.\d+e[+-]\d+")


@dataclass(frozen=True)
class Example:
    """A file that says in its head what it shows, and with which command."""

    name: str
    title: str
    command: str
    source: str

    @classmethod
    def read(cls, name: str) -> Example:
        """The example `name` of the folder."""
        head, _, source = (FOLDER / f"{name}.mlir").read_text(encoding="utf-8").partition("\n\n")
        title, command = (line.removeprefix("//").strip() for line in head.splitlines() if line != "//")
        return cls(name, title, command, source)

    def printed(self) -> str:
        """What its command prints."""
        return _run(self.command)[0]


def _run(command: str) -> tuple[str, str]:
    """What a command line prints, and what it says on stderr."""
    tool, *arguments = shlex.split(command)
    printed, said = io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(said):
        code = opt.run(arguments)
    if tool != "gradir-opt" or code:
        raise ValueError(f"{command}: exit code {code}\n{said.getvalue()}")
    return printed.getvalue(), said.getvalue()


def page() -> str:
    """The text of docs/autodiff.md with its examples made anew."""
    text = TARGET.read_text(encoding="utf-8")
    shown = {match[3] for match in _SECTION.finditer(text)}
    files = {path.stem for path in FOLDER.glob("*.mlir")}
    if shown != files:
        raise ValueError(f"{TARGET}: examples without a section or a file: {', '.join(sorted(shown ^ files))}")
    return _SECTION.sub(_section, text)


def _section(match: re.Match[str]) -> str:
    if match[2] == "residuals":
        command = f"gradir-opt {FOLDER}/{match[3]}.mlir -p differentiate --report-residuals"
        text = "\n".join(line.rstrip() for line in _run(command)[1].strip().splitlines())
        return f"{match[1]}\n`{command}`:\n\n```text\n{text}\n```\n\n{match[5]}"
    example = Example.read(match[3])
    wanted = [name.strip() for name in match[4].split(",")] if match[4] else None
    return f"{match[1]}\n{before_and_after(example, wanted)}\n{match[5]}"


def before_and_after(example: Example, wanted: Sequence[str] | None = None) -> str:
    """Two blocks of code: the functions with the request, and what the command makes of them."""
    given = functions_of(example.source)
    made = functions_of(_plain_numbers(example.printed()))
    names = [name for name in made if name not in given] if wanted is None else wanted
    aliases = [line for line in example.source.splitlines() if line.startswith("#")]
    before = [*aliases, *(text for name, text in given.items() if name != "@main")]
    requests = re.findall(r"^ *(%.* = ad\..*)$", given["@main"], re.M)
    lines = ["```mlir", *before, *requests, "```", "", f"`{example.command}`:", "", "```mlir", *(made[name] for name in names), "```", ""]
    return "\n".join(lines)


def functions_of(text: str) -> dict[str, str]:
    """The functions in the text of a module by their names, without indentation."""
    found: dict[str, str] = {}
    for match in _FUNCTION.finditer(text):
        found[match[2]] = "\n".join(line.removeprefix(match[1]) for line in match[0].splitlines())
    return found


def _plain_numbers(text: str) -> str:
    """1.000000e+00 is 1.0."""
    return _NUMBER.sub(lambda match: repr(float(match[0])), text)


def main(arguments: Sequence[str]) -> int:
    """Write the page to the file named first, docs/autodiff.md by default; run from the root of the repository."""
    return write_page(page(), arguments, TARGET)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
