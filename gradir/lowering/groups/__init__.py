"""Iteration-space analysis of sets of `linalg.generic` ops: the interface between fusion, scheduling and loop generation.

A group is what one kernel computes: its ops in program order, the dimensions that their loops share, and the role that each
dimension plays. `fuse` asks `merge` whether two groups may become one, `schedule-kernels` and `lower-kernels` read the same
facts back from a finished kernel with `group_of_kernel`, on tensors (level 2) and on memrefs (level 3) alike.
"""

from gradir.lowering.groups.analysis import MAX_OPS, build, group_of_kernel, marked_chain, merge, single
from gradir.lowering.groups.chain import STAGE, chain_group
from gradir.lowering.groups.group import ChainRoles, ContractionRoles, Group, GroupOp, RowsRoles, Section
from gradir.lowering.groups.joined import joined_loops
from gradir.lowering.groups.loops import Extent, Loops, captured_by, is_generic, loops_of

__all__ = [
    "MAX_OPS",
    "STAGE",
    "ChainRoles",
    "ContractionRoles",
    "Extent",
    "Group",
    "GroupOp",
    "Loops",
    "RowsRoles",
    "Section",
    "build",
    "captured_by",
    "chain_group",
    "group_of_kernel",
    "is_generic",
    "joined_loops",
    "loops_of",
    "marked_chain",
    "merge",
    "single",
]
