"""`gradir`: explain, version, the other tools."""

from __future__ import annotations

import pytest

from gradir import __version__
from gradir.errors import CODES
from gradir.tools.main import run

Capture = pytest.CaptureFixture[str]


def test_version(capsys: Capture) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"gradir {__version__}\n"


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_has_a_page(code: str, capsys: Capture) -> None:
    assert run(["explain", code.lower()]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{code} ({CODES[code].part}): ") and len(out.split(maxsplit=1)[1]) > 60


def test_explain_pass_shows_doc_and_options(capsys: Capture) -> None:
    assert run(["explain", "set-target"]) == 0
    out = capsys.readouterr().out
    assert "Options:" in out and "threads: int = 0" in out and "```" not in out.splitlines()[0]


def test_explain_pipeline_shows_passes_with_reasons(capsys: Capture) -> None:
    assert run(["explain", "to-buffers"]) == 0
    assert "  bufferize    whole-program view of lifetimes" in capsys.readouterr().out


def test_explain_without_topic_lists_all_codes(capsys: Capture) -> None:
    assert run(["explain"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(CODES)


def test_explain_op(capsys: Capture) -> None:
    assert run(["explain", "nd.tanh", "scf.for"]) == 0
    out = capsys.readouterr().out
    assert "nd.tanh: `result = (e**x - e**-x) / (e**x + e**-x)`" in out and "scf.for: an op of upstream MLIR" in out
    assert run(["explain", "nd.nothing"]) == 2
    assert "a topic is an error code, a pass, a named pipeline or an op" in capsys.readouterr().err


def test_unknown_topic_and_command(capsys: Capture) -> None:
    assert run(["explain", "GR01O"]) == 2
    assert "nothing is known about 'GR01O'; did you mean" in capsys.readouterr().err
    assert run(["explain", "tanh"]) == 2
    assert "did you mean 'nd.tanh'?" in capsys.readouterr().err
    assert run(["explian"]) == 2
    assert "did you mean 'explain'?" in capsys.readouterr().err
    assert run([]) == 2


def test_dispatch(capsys: Capture) -> None:
    assert run(["opt", "--list-dialects"]) == 0
    assert "linalg" in capsys.readouterr().out
