"""`python -m bench.limits [--json FILE]`: the limits of this machine (see `gradir.driver.limits`), one thread and all.

`limits()` is what the other parts of the benchmark take their percentages of.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from gradir.driver.limits import Limits, machine_limits


def limits(threads: tuple[int, ...] = ()) -> Limits:
    """The limits of this machine, measured once per process."""
    return machine_limits(threads)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.limits", description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = limits()
    print(found)
    if options.json:
        options.json.write_text(json.dumps(found.to_json(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
