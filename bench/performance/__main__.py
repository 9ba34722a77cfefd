"""`python -m bench.performance [--data DIR] [--out DIR]`: docs/status/performance.md, its plots and docs/status/bench.md."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.__main__ import markdown
from bench.performance.data import DATA, Data
from bench.performance.lines import lines
from bench.performance.page import page
from bench.performance.plots import plots

DOCS = Path(__file__).resolve().parent.parent.parent / "docs" / "status"


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.performance", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=DOCS)
    options = parser.parse_args()
    data = Data.read(options.data)
    for line in lines(data):
        print(f"{line.verdict:13} {line.what}: {line.measured} ({line.limit})")
    (options.out / "performance.md").write_text(page(data), encoding="utf-8")
    if 1 in data.runs:
        (options.out / "bench.md").write_text(markdown(data.runs[1]), encoding="utf-8")
    plots(data, options.out)


if __name__ == "__main__":
    main()
