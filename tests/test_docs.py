"""The manual: generated pages are current, every page and link exists, what README shows runs."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradir
from gradir.dialects import custom_calls
from gradir.dialects.target.implementations import TABLE, rows_of
from gradir.driver import explain as explaining
from gradir.driver.tuning import tune as tuning
from gradir.driver.tuning.trials import Job, Outcome
from gradir.runtime import library
from gradir.tools import main as tools
from gradir.tools.docs_page import GENERATORS
from tests.driver.test_explain import LIMITS, made_up

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted((*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")))
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
CODE_SPAN = re.compile(r"`[^`\n]*`")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the manual's generator makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.M)
    words = (re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower() for heading in headings)
    return {re.sub(r"[\s-]+", "-", heading) for heading in words}


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in FENCE.findall(page.read_text()) if kind == language]


@pytest.mark.parametrize("name", GENERATORS)
def test_generated_page_is_current(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    generator = importlib.import_module(f"gradir.tools.{name}")
    assert generator.page() == generator.TARGET.read_text(), f"run python -m gradir.tools.{name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page: Path) -> None:
    """Code is no link, though `f["main"](*arrays)` looks like one."""
    for link in LINK.findall(CODE_SPAN.sub("", FENCE.sub("", page.read_text()))):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{link}: no such file"
        assert not anchor or anchor in anchors(found), f"{link}: no such heading in {found.name}"


def test_the_menu_has_every_page() -> None:
    named = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M))
    assert named == {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent != DOCS / "status"], ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page: Path) -> None:
    """`gradir/x/y.py` and the like, in backquotes."""
    roots = r"gradir|tests|docs|examples|bench"
    for name in re.findall(rf"`((?:{roots})/[\w/.-]+)`", page.read_text()):
        assert (ROOT / name).exists() or (ROOT / f"{name}.py").exists(), f"{page.name} names {name}"


def test_readme_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block runs, and gives what a reader would compute."""
    monkeypatch.setenv("GRADIR_CACHE_DIR", str(tmp_path))
    (block,) = blocks(ROOT / "README.md", "python")
    names: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), names)
    assert names["w"].shape == (3, 2) and float(names["value"]) == 1.0  # type: ignore[attr-defined, arg-type]


def test_python_of_the_manual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The blocks of the pages on Python and on the runtime run as they stand, one after the other."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADIR_CACHE_DIR", str(tmp_path / "cache"))
    shapes = {"x": (128, 784), "w": (784, 512), "b": (512,)}
    names: dict[str, object] = {"np": np, "gd": gradir, "text": (ROOT / "examples" / "layer.mlir").read_text()}
    names |= {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    for page in ("python.md", "runtime.md"):
        for block in blocks(DOCS / page, "python"):
            exec(compile(block, page, "exec"), names)
    assert "nd.tanh" in capsys.readouterr().out and (names["y"] == 785).all()  # type: ignore[attr-defined]
    assert (tmp_path / "f.gradir").exists() and (tmp_path / "layer.gradir").exists()


@pytest.mark.parametrize("page", ["complex.md", "effects.md", "random.md", "regions.md"])
def test_python_of_short_pages(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their blocks run on arrays of the shapes that the text implies."""
    monkeypatch.setenv("GRADIR_CACHE_DIR", str(tmp_path))
    names: dict[str, Any] = {"np": np, "gd": gradir, "x": np.ones((3, 6), np.float32), "v": np.ones(6, np.float32)}
    names |= {"indices": np.array([[1], [1]], np.int32), "updates": np.array([2, 5], np.float32)}
    found = blocks(DOCS / page, "python")
    assert found
    for block in found:
        exec(compile(block, page, "exec"), names)


def test_dynamic_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of the page run, and its program in MLIR is one."""
    monkeypatch.setenv("GRADIR_CACHE_DIR", str(tmp_path))
    page = DOCS / "dynamic-sizes.md"
    names: dict[str, object] = {"np": np, "gd": gradir}
    for block in blocks(page, "python"):
        exec(compile(block, page.name, "exec"), names)
    (program,) = blocks(page, "mlir")
    (y,) = (gradir.compile(gradir.parse(program))["f"](np.zeros((2, 4), np.float32)),)
    assert y.tolist() == [0.0] * 8 + [1.0]


def test_operator_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of the page run, the program in MLIR is one, and the table has the rows that come with us."""
    monkeypatch.setenv("GRADIR_CACHE_DIR", str(tmp_path))
    page = DOCS / "library.md"
    rows_of("")
    rows = [row for rows in TABLE.values() for row in rows]
    lines = [f"| {r.op} | {r.name} | {r.kind} | {r.target} | {', '.join(sorted(r.dtypes)) or 'all'} |" for r in rows]
    assert "\n".join(lines) in page.read_text()
    names: dict[str, Any] = {"np": np, "gd": gradir}
    saved = list(TABLE["nd.cholesky"])
    try:
        for block in blocks(page, "python"):
            exec(compile(block, page.name, "exec"), names)
    finally:
        TABLE["nd.cholesky"][:] = saved
        for name in ("powers", "slow_cholesky"):
            custom_calls.CALLS.pop(name, None)
            library.ROWS.pop(name, None)
    np.testing.assert_allclose(names["y"], np.exp(names["x"]), rtol=1e-4)
    np.testing.assert_allclose(names["slope"], np.exp(names["x"]), rtol=1e-3)
    np.testing.assert_allclose(names["factor"], [[2, 0], [1, 2]], rtol=1e-6)
    (program,) = blocks(page, "mlir")
    a = 4 * np.eye(96, dtype=np.float32)
    np.testing.assert_array_equal(gradir.compile(gradir.parse(program))["f"](a), a / 2)


def test_explain_and_tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The blocks of both pages run, on made-up times."""
    monkeypatch.setenv("GRADIR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(explaining, "measure_runs", lambda: made_up)
    monkeypatch.setattr(explaining.LimitsFile, "limits", lambda self: LIMITS)
    monkeypatch.setattr(explaining.LimitsFile, "measured_again", lambda self: LIMITS)
    real = tuning.tune
    monkeypatch.setattr(tuning, "tune", lambda *args, **options: real(*args, measure=equal_times, **options))
    names: dict[str, Any] = {"np": np, "gd": gradir, "model": lambda x, w: gradir.tanh(x @ w)}
    names |= {"x": np.ones((8, 16), np.float32), "w": np.ones((16, 4), np.float32), "y": np.ones((8, 4), np.float32)}
    for page in ("explain.md", "tuning.md"):
        for block in blocks(DOCS / page, "python"):
            exec(compile(block, page, "exec"), names)
    out = capsys.readouterr().out
    assert "contraction tile" in out and "as it was" in out and "between kernels" in out


def equal_times(job: Job) -> list[Outcome]:
    return [Outcome((1.0,) * job.rounds) for _ in job.forms]


def test_plugin_commands(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT / "examples" / "plugin")
    commands = [line[2:] for line in blocks(Path("README.md"), "console")[0].splitlines()]
    assert len(commands) == 3
    for command in commands:
        tool, *arguments = shlex.split(command)
        assert tools.run([tool.removeprefix("gradir-"), *arguments]) == 0, capsys.readouterr().err
    assert "f32=0.8\n" in capsys.readouterr().out


def test_readme_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every `gradir...` line runs on the MLIR block as layer.mlir."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADIR_CACHE_DIR", str(tmp_path / "cache"))
    (layer,) = blocks(ROOT / "README.md", "mlir")
    Path("layer.mlir").write_text(layer)
    commands = [line for body in blocks(ROOT / "README.md", "") for line in body.splitlines() if line.startswith("gradir-")]
    assert len(commands) == 6
    for command in commands:
        tool, *arguments = shlex.split(command)
        assert tools.run([tool.removeprefix("gradir-"), *arguments]) == 0, capsys.readouterr().err
    assert "128x512xf32=[" in capsys.readouterr().out
