"""Schedules of plain loops: one vector along the output's last dimension."""

from __future__ import annotations

from gradir.dialects.kernel import LoopsAttr
from gradir.lowering.groups import Group
from gradir.lowering.schedules.machine import Machine, bytes_of


def schedule_loops(group: Group, machine: Machine) -> LoopsAttr:
    """tile = [lanes of the widest output]."""
    return LoopsAttr.of(tile=[machine.lanes_of(max(bytes_of(o.output) for o in group.ops))])
