"""Kind `rows` on a GPU: which op of a group runs in which launch."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from gradir.lowering.groups import Group
from gradir.lowering.groups.group import Section
from gradir.lowering.lower_kernels.tiles import NotCovered
from gradir.lowering.schedules.gpu_rows import row_tile


@dataclass(frozen=True)
class RowPlan:
    """The ops of a `rows` group by launch, as keys of level 3.

    `sections` by key; `columns` are reduced over rows, `late` follow them; `kept` are temporaries that later launches read from memory.
    """

    sections: dict[SSAValue, Section]
    rows: tuple[SSAValue, ...]
    columns: tuple[SSAValue, ...]
    late: tuple[SSAValue, ...]
    kept: tuple[SSAValue, ...]


def plan_rows(group: Group, temporaries: frozenset[SSAValue], in_place: bool) -> RowPlan:
    """Which op runs in which launch. Raises `NotCovered` for what needs the op-by-op way."""
    roles = group.rows
    assert roles is not None
    sections = {o.output: s for o, s in zip(group.ops, roles.sections)}
    if not in_place and is_a_long_total(group):
        sections = {key: _as_total(section, key in temporaries) for key, section in sections.items()}
    inputs = {o.output: [v for v, _ in o.inputs if v in sections] for o in group.ops}
    if any(o.loops.is_reduction and o.loops.combiner is None for o in group.ops):
        raise NotCovered("a reduction that is no combination")
    columns = tuple(k for k, s in sections.items() if s.form == "reduce_outer")
    late = tuple(k for k, s in sections.items() if s.after_rows)
    if columns and in_place:
        raise NotCovered("column reductions beside outputs in place")
    kept: dict[SSAValue, None] = dict.fromkeys(columns)

    def keep_row_values(key: SSAValue) -> None:
        for source in inputs[key]:
            if sections[source].form in ("row", "reduce_inner"):
                kept[source] = None
            elif sections[source].form == "full":
                keep_row_values(source)

    for key in columns:
        keep_row_values(key)
    rows = tuple(
        k for k, s in sections.items() if s.form in ("full", "row", "reduce_inner") and (k not in temporaries or k in kept)
    )  # fmt: skip
    return RowPlan(sections, rows, columns, late, tuple(k for k in kept if k in temporaries))


def is_a_long_total(group: Group) -> bool:
    """One row that no block holds and that is swept once: the whole grid adds it up."""
    roles = group.rows
    return roles is not None and not roles.outer and roles.sweeps == 1 and not row_tile(group).chunks


def _as_total(section: Section, temporary: bool) -> Section:
    """Where an op of a long total runs: sums by the grid, what is computed from them behind it, stored elements by the grid too."""
    if section.form == "reduce_inner":
        return Section("reduce_outer")
    if section.form == "row" and section.sweep >= 0:
        return Section("scalar")
    return Section("inner") if section.form == "full" and not temporary else section
