"""Requests that must be refused: each with the right code, op and place, and with words that say what to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.tools import opt
from tests.autodiff.refused_python import PYTHON
from tests.autodiff.refused_text import TEXTS


@pytest.mark.parametrize("name", TEXTS)
def test_refused_in_text(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first diagnostic of `gradir-opt` is at the marked op, and its status says that there is one."""
    case = TEXTS[name]
    path = tmp_path / "case.mlir"
    path.write_text(case.source, encoding="utf-8")
    status = opt.run([str(path), "-p", "differentiate", "--allow-unregistered-dialect"])
    out, err = capsys.readouterr()
    assert status == 1 and not out
    first = re.match(rf"{re.escape(str(path))}:(\d+):\d+: error: (.*) \[(\w+) (\w+)\]", err)
    assert first is not None, err
    line, message, part, code = first.groups()
    assert (int(line), code, part) == (case.line, case.code, "autodiff" if case.code.startswith("AD") else "graph"), err
    assert case.op in message and err.count("error:") == 1, err
    for word in case.words:
        assert word in err, err


@pytest.mark.parametrize("name", PYTHON)
def test_refused_in_python(name: str) -> None:
    """The error is at a line of the user's, here of the table."""
    case = PYTHON[name]
    with pytest.raises(gd.GradirError) as caught:
        case.run()
    error, text = caught.value, str(caught.value)
    assert (error.code, error.op, error.part) == (case.code, case.op, "autodiff" if case.code.startswith("AD") else "graph"), text
    assert re.fullmatch(r".*/refused_python\.py:\d+:\d+", error.location), text
    for word in case.words:
        assert word in text, text


def test_printing_is_no_obstacle(capfd: pytest.CaptureFixture[str]) -> None:
    """Effects that only look on are not differentiated, and happen once."""

    def loud(x: Any) -> Any:
        gd.print("x = {}", x)
        return gd.sum(x * x)

    np.testing.assert_array_equal(gd.grad(loud)(np.ones(3)), 2 * np.ones(3))
    assert capfd.readouterr().out.count("x =") == 1
