"""`python -m bench.gpu.pack FOLDER`: wheels of what Gradir needs, for a machine with a GPU and without network, and how to use them there.

The sources travel by themselves (`git archive`, a copy of the checkout); cupy, torch and the driver are expected to be there.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Download the wheels; pip's exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.pack")
    parser.add_argument("folder")
    parser.add_argument("--python", default="", help="version there, such as 3.12 (default: this one)")
    parser.add_argument("--with-ptxas", action="store_true", help="also the assembler (40 MB): programs then hold cubins")
    args = parser.parse_args(arguments)
    done = subprocess.run([*command(args.folder, args.python), *requirements(ptxas=args.with_ptxas)], check=False)
    sys.stdout.write(
        f"there: python -m pip install --no-index --find-links {args.folder} {' '.join(map(repr, requirements(ptxas=args.with_ptxas)))}\n"
        "then:  PYTHONPATH=. python -m bench.gpu.check --workers 16 --out gpu-check.json\n"
    )
    return done.returncode


def command(folder: str, python: str) -> list[str]:
    """How pip is called."""
    other = ["--python-version", python, "--only-binary=:all:"] if python else ["--prefer-binary"]
    return [sys.executable, "-m", "pip", "download", "--dest", folder, *other]


def requirements(root: Path = Path(__file__).parents[2], *, ptxas: bool = False) -> list[str]:
    """What the project file asks for."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return [*project["dependencies"], *(project["optional-dependencies"]["ptx"] if ptxas else [])]


if __name__ == "__main__":
    sys.exit(main())
