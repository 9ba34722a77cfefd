"""Both caches: hits without work, keys that see every difference, damage, unwritable directories, the size limit."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from gradir.driver import build as building, cache as caching, compile as compiling
from gradir.driver.cache import Cache, default_directory, open_cache
from gradir.driver.compile import compile_module
from gradir.driver.report import CompileReport
from gradir.ir.text import parse_module
from tests.driver.scaled import scaled

ROOT = Path(__file__).resolve().parents[2]
X = np.random.default_rng(0).random((64, 32), np.float32)


def compiled(text, cache, factor: float = 6.0, **options) -> CompileReport:
    report = CompileReport()
    module = compile_module(text, cache=cache, report=report, **options)
    np.testing.assert_allclose(module["f"](X), X * factor, rtol=1e-6)
    return report


def files(directory, kind: str) -> list:
    return sorted((directory / kind).iterdir())


def test_second_compilation_is_a_hit_and_does_no_work(tmp_path, monkeypatch):
    first = compiled(scaled(), tmp_path)
    assert first.program_cache == "miss" and first.kernels_compiled == 1 and len(files(tmp_path, "programs")) == 1
    monkeypatch.setattr(compiling, "read", None)
    monkeypatch.setattr(building, "compile_object", None)
    second = compiled(scaled(), tmp_path)
    assert second.program_cache == "hit" and set(second.stages) == {"hash", "load"}
    assert second.arena_bytes == {"f": 8192} and second.object_bytes == first.object_bytes and second.kernels == 1


def test_a_module_object_hits_too_and_is_not_changed(tmp_path):
    module = parse_module(scaled())
    before = str(module)
    assert compiled(module, tmp_path).program_cache == "miss" and str(module) == before
    assert compiled(parse_module(scaled()), tmp_path).program_cache == "hit"


def test_warm_in_a_second_process(tmp_path):
    compiled(scaled(), tmp_path)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from tests.driver.scaled import scaled\n"
        "from gradir.driver.compile import compile_module\n"
        "from gradir.driver.report import CompileReport\n"
        "r = CompileReport(); compile_module(scaled(), report=r); print(r.program_cache)"
    )
    environment = {**os.environ, "GRADIR_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code, str(ROOT)], capture_output=True, text=True, env=environment)
    assert done.stdout == "hit\n", done.stderr


def test_equal_kernels_of_other_programs_are_not_compiled_again(tmp_path):
    compiled(scaled(), tmp_path)
    report = compiled(scaled(4.0, 5.0, name="another_name"), tmp_path, 20.0)
    assert report.program_cache == "miss" and report.kernels_compiled == 0 and report.kernels_cached == 1
    other = CompileReport()
    module = compile_module(scaled(op="addf"), cache=tmp_path, report=other)
    np.testing.assert_allclose(module["f"](X), X + 5, rtol=1e-6)
    assert other.kernels_compiled == 1 and other.kernels_cached == 0


def test_equal_kernels_of_one_program_are_compiled_once(tmp_path):
    text = scaled()
    start, end = text.index("  func.func private"), text.index("  func.func @f")
    kernel = text[start:end]
    text = text.replace(kernel, kernel + kernel.replace("@scale", "@twin")).replace("func.call @scale(%h", "func.call @twin(%h")
    report = compiled(text, tmp_path)
    assert report.kernels_compiled == 1
    assert compiled(text, False).program_cache == "off"


def test_the_reason_for_a_schedule_is_no_part_of_a_kernel(tmp_path):
    compiled(scaled(), tmp_path)
    report = compiled(scaled().replace("#kernel.elementwise<>", '#kernel.elementwise<>, gradir.reason = "for fun"'), tmp_path)
    assert report.program_cache == "miss" and report.kernels_compiled == 0 and report.kernels_cached == 1


@pytest.mark.parametrize("options", [{"threads": 1}, {"threads": 3}, {"target": "cpu:x86-64-v2"}])
def test_options_are_part_of_the_key(tmp_path, options):
    compiled(scaled(), tmp_path)
    report = compiled(scaled(), tmp_path, **options)
    assert report.program_cache == "miss" and report.kernels_cached == 0


def test_versions_and_sources_are_part_of_the_key(tmp_path, monkeypatch):
    compiled(scaled(), tmp_path)
    monkeypatch.setattr(compiling, "toolchain", lambda: "another compiler")
    assert compiled(scaled(), tmp_path).program_cache == "miss"


@pytest.mark.parametrize("kind", ["programs", "kernels", "objects"])
@pytest.mark.parametrize("damage", ["truncate", "alter", "empty"])
def test_damaged_entries_are_dropped_and_made_again(tmp_path, kind, damage):
    compiled(scaled(), tmp_path)
    (path,) = files(tmp_path, kind)
    data = path.read_bytes()
    path.write_bytes({"truncate": data[: len(data) // 2], "alter": data[:20] + b"\xff" + data[21:], "empty": b""}[damage])
    if kind != "programs":
        for program in files(tmp_path, "programs"):
            program.unlink()
    report = compiled(scaled(), tmp_path)
    assert report.program_cache == "miss" and report.kernels_cached == (1 if kind == "programs" else 0)
    assert path.read_bytes() == data or kind != "programs"
    assert compiled(scaled(), tmp_path).program_cache == "hit"


def test_unwritable_directory_works_without_and_warns_once(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    with pytest.warns(RuntimeWarning, match="without a cache.*file cannot be written"):
        compiled(scaled(), blocked)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(scaled(), blocked).program_cache == "miss"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_directory_still_serves(tmp_path):
    compiled(scaled(), tmp_path)
    for folder in (tmp_path, *tmp_path.iterdir()):
        folder.chmod(0o555)
    try:
        assert compiled(scaled(), tmp_path).program_cache == "hit"
    finally:
        for folder in (tmp_path, *tmp_path.iterdir()):
            folder.chmod(0o755)


def test_no_temporary_files_are_left(tmp_path):
    compiled(scaled(), tmp_path)
    assert not list(tmp_path.rglob(".*"))


def test_least_recently_used_files_go_first(tmp_path):
    cache = Cache(tmp_path, size_limit=4000)
    for index in range(5):
        cache._write("objects", f"{index}", bytes(1000))
        os.utime(tmp_path / "objects" / f"{index}", (index, index))
    os.utime(tmp_path / "objects" / "0", None)
    cache.clean()
    assert [path.name for path in files(tmp_path, "objects")] == ["0", "3", "4"]
    assert sum(cache.sizes().values()) == 3000
    cache.clean()
    assert len(files(tmp_path, "objects")) == 3


def test_cleaning_happens_by_itself_once_in_a_while(tmp_path):
    cache = Cache(tmp_path, size_limit=1000)
    cache._write("objects", "a", bytes(900))
    cache._write("objects", "b", bytes(900))
    assert len(files(tmp_path, "objects")) == 2
    long_ago = time.time() - 2 * caching.CLEANUP_INTERVAL
    os.utime(tmp_path / "cleaned", (long_ago, long_ago))
    cache._write("objects", "c", bytes(10))
    assert [path.name for path in files(tmp_path, "objects")] == ["c"]


def test_where_the_cache_is(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIR_CACHE_DIR", str(tmp_path))
    assert default_directory() == tmp_path and open_cache(True) == Cache(tmp_path)
    monkeypatch.setenv("GRADIR_CACHE_DIR", "")
    assert default_directory() is None and open_cache(True) is None
    monkeypatch.delenv("GRADIR_CACHE_DIR")
    assert "gradir" in str(default_directory())
    assert open_cache(False) is None and open_cache(tmp_path) == Cache(tmp_path) and open_cache(Cache(tmp_path)) == Cache(tmp_path)
