"""The table of dialects: lazy, complete, open to plugins."""

from __future__ import annotations

import subprocess
import sys

import pytest
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Dialect

from gradir.dialects import registry
from gradir.ir.text import parse_module


@pytest.mark.parametrize("name", registry.DIALECTS)
def test_every_row_loads_a_dialect_of_that_name(name: str) -> None:
    dialect = registry.load(name)
    assert isinstance(dialect, Dialect) and dialect.name == name
    names = [op.name for op in dialect.operations]
    assert len(names) == len(set(names)), "one op name has one class"


def test_a_context_imports_no_dialect_that_the_program_does_not_use() -> None:
    code = """
import sys
from gradir.dialects.registry import make_context
make_context()
loaded = [name for name in sys.modules if name.startswith("gradir.dialects.") and name != "gradir.dialects.registry"]
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_plugins_add_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "DIALECTS", dict(registry.DIALECTS))
    registry.register("other", "xdsl.dialects.builtin:Builtin")
    assert registry.load("other") is Builtin
    registry.register_loaded(Builtin, "xdsl.dialects.builtin")
    assert registry.DIALECTS["builtin"] == "xdsl.dialects.builtin:Builtin"


def test_malformed_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="expected 'module:attribute', found 'nowhere'"):
        registry.register("other", "nowhere")
    with pytest.raises(ValueError, match="has no name for it"):
        registry.register_loaded(Dialect("strange"), __name__)


def test_unregistered_ops_only_on_demand() -> None:
    text = '"foreign.op"() : () -> ()'
    with pytest.raises(Exception, match=r"foreign\.op"):
        parse_module(text)
    assert parse_module(text, context=registry.make_context(allow_unregistered=True)).body.block.first_op is not None
