"""What `--list-passes` and `--list-dialects` print."""

from __future__ import annotations

from gradir.driver.passes import PASSES
from gradir.driver.pipelines import PIPELINES, ROAD


def list_passes() -> str:
    """Each pass with its summary, then the named pipelines with what they expand to."""
    width = max(map(len, (*PASSES, *PIPELINES))) + 2
    lines = ["Passes:"]
    lines += [f"  {name:{width}}{summary}" for name, (_, summary) in sorted(PASSES.items())]
    lines += ["", "Named pipelines:"]
    for name, (first, last, options) in PIPELINES.items():
        stages = list(dict.fromkeys(step.stage for step in ROAD))
        wanted = stages[stages.index(first) : stages.index(last) + 1]
        passes = ",".join(step.pass_name for step in ROAD if step.stage in wanted)
        lines.append(f"  {name + ('{' + ' '.join(f'{o}=...' for o in options) + '}' if options else ''):{width}}{passes}")
    return "\n".join(lines) + "\n"


def list_dialects() -> str:
    """The names of the dialects that text may use."""
    from gradir.dialects.registry import DIALECTS  # imports xDSL's core, which --list-passes does not need

    return "\n".join(sorted(DIALECTS)) + "\n"
