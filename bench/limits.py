"""`python -m bench.limits [--json FILE]`: the limits of this machine (see `gradir.driver.limits`), one thread and all.

`limits()` is what the other parts of the benchmark take their percentages of.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gradir.driver.limits import Limits, machine_limits


def limits(threads: tuple[int, ...] = ()) -> Limits:
    """The limits of this machine, measured once per process."""
    return machine_limits(threads)


def as_json(found: Limits) -> dict[str, Any]:
    """`Limits` with text for keys: `{"flops": {"f32 1": ...}, "bandwidth": {"copy memory 1": ...}, ...}`."""
    fields = asdict(found)
    for name in ("flops", "bandwidth"):
        fields[name] = {" ".join(map(str, key)): value for key, value in fields[name].items()}
    return fields


def from_json(fields: dict[str, Any]) -> Limits:
    """The inverse of `as_json`."""

    def keys(table: dict[str, float]) -> dict[Any, float]:
        return {(*key.split()[:-1], int(key.split()[-1])): value for key, value in table.items()}

    return Limits(fields["cpu"], fields["vector_bits"], fields["sizes"], keys(fields["flops"]), keys(fields["bandwidth"]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.limits", description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = limits()
    print(found)
    if options.json:
        options.json.write_text(json.dumps(as_json(found), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
