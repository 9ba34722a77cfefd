"""No op lacks a facet unless it says why; the op reference names every op."""

from __future__ import annotations

from pathlib import Path

from gradir.dialects import nd
from gradir.dialects.facets import SAMPLES, SKIPPED, Facet, facet_table, holes, skip
from gradir.tools import docs_ops


def test_every_op_has_every_facet_or_a_reason():
    assert holes(docs_ops.table()) == []


def test_a_hole_is_found_and_a_skip_closes_it():
    facet = Facet("test-facet", "made up", lambda op: op is not nd.AddOp)
    assert holes(facet_table([nd.AddOp, nd.SubOp], [SAMPLES, facet])) == ["nd.add: test-facet"]
    skip(nd.AddOp, "test-facet", "a test")
    assert holes(facet_table([nd.AddOp, nd.SubOp], [SAMPLES, facet])) == []


def test_skips_are_not_stale():
    table = docs_ops.table()
    for (op, facet), reason in SKIPPED.items():
        assert reason
        if facet in table[op.name]:
            assert not table[op.name][facet].present, f"{op.name} has {facet} and is skipped: {reason}"


def test_derivatives_and_batches_say_how():
    """One op of each kind."""
    how = {name: tuple(row[facet].how or "skipped" for facet in ("vjp", "jvp", "batch")) for name, row in docs_ops.table().items()}
    assert how["nd.mul"] == ("rule", "transposed", "rule")
    assert how["nd.reshape"] == ("rule", "rule", "rule")
    assert how["nd.layer_norm"] == ("expansion", "expansion", "expansion")
    assert how["nd.reduce"] == ("loop", "loop", "loop")
    assert how["nd.random_bits"] == ("skipped", "skipped", "lane by lane")
    assert how["nd.constant"][2] == "skipped"


def test_reference_names_every_op(tmp_path: Path):
    target = tmp_path / "docs" / "ops.md"
    assert docs_ops.main([str(target)]) == 0
    text = target.read_text()
    for op in nd.Nd.operations:
        assert f"### {op.name}\n" in text
        assert op.__doc__ is not None
    assert "**hole**" not in text
