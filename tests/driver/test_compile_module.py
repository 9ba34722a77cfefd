"""compile_module: results, entries, reports, saved modules, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from gradir.driver.compile import compile_module
from gradir.driver.report import LEVELS, CompileReport
from gradir.errors import GradirError
from gradir.ir.text import parse_module
from gradir.runtime import load
from tests.driver.scaled import scaled

X = np.random.default_rng(0).random((64, 32), np.float32)


def refused(code: str, *arguments, **options) -> GradirError:
    with pytest.raises(GradirError) as caught:
        compile_module(*arguments, cache=False, **options)
    assert caught.value.code == code
    return caught.value


@pytest.mark.parametrize("threads", [None, 1, 2])
def test_level_4(threads):
    module = compile_module(scaled(), cache=False, threads=threads)
    np.testing.assert_allclose(module["f"](X), 6 * X, rtol=1e-6)
    spec = module["f"].spec
    assert [str(t) for t in spec.inputs + spec.outputs] == ["64x32xf32"] * 2 and spec.arena_bytes == 8192
    assert [t.name for t in spec.inputs + spec.outputs] == ["x", "result0"]


def test_saved_module_runs_from_the_file(tmp_path):
    for cache in (False, tmp_path / "cache"):
        compile_module(scaled(), cache=cache).save(tmp_path / "f.gradir")
        np.testing.assert_allclose(load(tmp_path / "f.gradir")["f"](X), 6 * X, rtol=1e-6)


def test_manifest_records_versions_target_and_trees():
    manifest = compile_module(scaled(), cache=False, trees={"f": ("((*,), {})", "*")}).manifest
    assert {"gradir", "llvm", "xdsl", "numpy", "llvmlite"} <= set(manifest.versions)
    assert manifest.target.cpu and manifest.target.features and "-" in manifest.target.triple
    assert manifest.functions[0].input_tree == "((*,), {})" and manifest.functions[0].output_tree == "*"


def test_features_of_another_cpu_are_its_own():
    target = compile_module(scaled(), cache=False, target="cpu:x86-64-v2").manifest.target
    assert target.cpu == "x86-64-v2" and "avx2" not in target.features


def test_report():
    report = CompileReport(keep_ir=True)
    compile_module(scaled(), report=report)
    assert {"hash", "parse", "verify", "emit", "llvm", "load"} <= set(report.stages) and report.seconds > 0
    assert report.kernels == 1 and report.object_bytes > 500 and report.program_cache == "off"
    assert "vector.store" in report.ir[LEVELS[4]] and "f.packed" in report.ir[LEVELS[5]]
    assert "total" in report.text() and "arena of @f: 8192 bytes" in report.text()


def test_one_entry_of_several():
    module = parse_module(
        scaled().rstrip()[:-1] + "func.func @g(%x: memref<4xf32>, %y: memref<4xf32>) attributes {gradir.results = 1 : i64} { return }\n}\n"
    )
    assert compile_module(module, cache=False).functions == ("f", "g")
    assert compile_module(module, cache=False, entry="@g").functions == ("g",)
    assert refused("GR052", module, entry="h").expected == "@f, @g"


def test_no_public_function():
    refused("GR052", scaled().replace("func.func @f", "func.func private @f"))


def test_memref_function_without_marks():
    error = refused("GR050", scaled(marks=False))
    assert error.function == "@f" and "gradir.results" in error.expected


def test_type_without_an_array():
    error = refused("GR051", "func.func @f(%x: tensor<2xi7>) -> tensor<2xi7> { return %x : tensor<2xi7> }")
    assert error.found == "tensor<2xi7>"


@pytest.mark.parametrize("target", ["abacus", "cudax", "cuda:sm_1"])
def test_unknown_target(target):
    assert refused("OP041", scaled(), target=target).found == target.removeprefix("cuda:")


def test_syntax_error():
    assert refused("GR010", "func.func @f(").location.startswith("<text>:1:")


def test_failed_assertion_points_at_its_line():
    text = """
func.func @f(%x: memref<4xi64>, %y: memref<4xi64>) attributes {gradir.results = 1 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i64
  %v = memref.load %x[%c0] : memref<4xi64>
  %ok = arith.cmpi sge, %v, %zero : i64
  cf.assert %ok, "the first element must not be negative"
  memref.store %v, %y[%c0] : memref<4xi64>
  return
}
"""
    module = compile_module(text, cache=False)
    assert module["f"](np.arange(5, 9))[0] == 5
    with pytest.raises(GradirError, match="must not be negative") as caught:
        module["f"](np.arange(-3, 1))
    assert caught.value.code == "RT020" and caught.value.location == "<text>:7:3"


def test_assertions_keep_their_lines_through_the_cache(tmp_path):
    text = (
        "\n" * 3
        + """func.func @f(%x: memref<1xi64>, %y: memref<1xi64>) attributes {gradir.results = 1 : i64} {
  %no = arith.constant false
  cf.assert %no, "never"
  return
}
"""
    )
    for blank in ("", "\n\n"):
        for _ in range(2):
            module = compile_module(parse_module(blank + text), cache=tmp_path)
            with pytest.raises(GradirError) as caught:
                module["f"](np.zeros(1, np.int64))
            assert caught.value.location == f"<text>:{6 + len(blank)}:3"


def test_what_passes_made_is_checked_for_dominance_before_emission(monkeypatch):
    from gradir.driver import passes
    from gradir.ir.passes import Pass

    class Careless(Pass):
        """Moves the first op of a function to its end."""

        NAME = "expand-math"

        def apply(self, op, context):
            block = op.body.block.last_op.body.block
            first = block.first_op
            first.detach()
            block.insert_op_before(first, block.last_op)

    monkeypatch.setitem(passes.PASSES, "expand-math", (Careless, "breaks the IR"))
    assert "dominate" in refused("GR011", scaled()).message
