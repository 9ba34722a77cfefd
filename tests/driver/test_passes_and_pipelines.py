"""The tables of passes and pipelines: every row loads, the road keeps its order, names are checked, progress is recognised."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest

from gradir.driver import passes, pipelines
from gradir.driver.lower import lower
from gradir.driver.passes import PASSES, load_pass, register_pass
from gradir.driver.pipelines import BEFORE_AD, MUST_PRECEDE, ROAD, check_order, expand_pipeline
from gradir.driver.progress import level_of, remaining
from gradir.errors import GradirError
from gradir.ir.diagnostics import DiagnosedError
from gradir.ir.passes import Pass
from gradir.ir.text import parse_module
from tests.driver.scaled import scaled

SIGMOID = """
func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = nd.logistic %x : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
"""


@pytest.mark.parametrize("name", PASSES)
def test_every_row_is_a_pass_of_that_name(name):
    assert issubclass(load_pass(name), Pass) and name == load_pass(name).NAME


def test_tables_load_without_xdsl():
    code = "import sys, gradir.driver.passes, gradir.driver.pipelines; assert 'xdsl' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_pass():
    with pytest.raises(GradirError) as caught:
        load_pass("fuze")
    assert caught.value.code == "GR030" and caught.value.hint == "did you mean 'fuse'?"


def test_plugins_register(monkeypatch):
    monkeypatch.setattr(passes, "PASSES", dict(PASSES))

    class Mine(Pass):
        NAME = "mine"

    register_pass("mine", Mine, "a pass of a test")
    register_pass("mine", Mine, "again")
    assert load_pass("mine") is Mine
    with pytest.raises(GradirError) as caught:
        register_pass("fuse", Mine, "takes a name of ours")
    assert caught.value.code == "GR031"


def test_the_road_names_passes_and_gives_reasons():
    assert all(step.pass_name in PASSES and len(step.why) > 10 for step in ROAD + BEFORE_AD)
    assert all(step.level_in <= step.level_out for step in ROAD)
    assert all(a.level_out == b.level_in for a, b in pairwise(ROAD))


@pytest.mark.parametrize(("first", "second", "reason"), MUST_PRECEDE)
def test_order_is_enforced(first, second, reason):
    check_order([first, second])
    with pytest.raises(ValueError, match=f"'{first}' must precede '{second}'"):
        check_order([second, first])


def test_named_pipelines_cover_the_road_without_repeating_a_pass():
    names = [request.name for pipeline in ("to-structured", "to-buffers", "to-loops") for request in expand_pipeline(pipeline)]
    assert names == [step.pass_name for step in ROAD] and len(set(names)) == len(names)


def test_target_goes_to_set_target():
    first, *others = expand_pipeline("to-structured", {"target": "cpu"})
    assert str(first) == "set-target{target=cpu}" and not any(request.options for request in others)


@pytest.mark.parametrize(("pipeline", "option"), [("to-structured", "threads"), ("to-buffers", "target")])
def test_unknown_option_of_a_pipeline(pipeline, option):
    with pytest.raises(GradirError) as caught:
        expand_pipeline(pipeline, {option: 1})
    assert caught.value.code == "GR032" and caught.value.found == option


def test_every_level_is_recognised():
    module = parse_module(SIGMOID)
    seen = [level_of(module)]
    for stage in ("structured", "buffers", "loops"):
        lower(module, target="cpu", last=stage)
        seen.append(level_of(module))
    assert seen == [1, 2, 3, 4]
    assert [request.name for request in remaining(module)] == ["expand-math"]


def test_what_is_left_follows_the_marks():
    def left(text: str) -> list[str]:
        return [request.name for request in remaining(parse_module(text))]

    road = [step.pass_name for step in ROAD]
    assert left(SIGMOID) == road
    module = parse_module(SIGMOID)
    lower(module, target="cpu", last="structured")
    assert [r.name for r in remaining(module)] == road[road.index("schedule-kernels") :]
    lower(module, last="buffers")
    assert [r.name for r in remaining(module)] == ["lower-kernels", "expand-math"]
    assert left(scaled()) == ["set-target", "expand-math"]


def test_requests_for_derivatives_take_the_long_road():
    text = SIGMOID.replace("func.func @f", "func.func private @f") + (
        "func.func @g(%x: tensor<2x3xf32>, %d: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
        "  %0, %1 = ad.vjp @f(%x, %d) wrt [0] : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)\n"
        "  return %1 : tensor<2x3xf32>\n}\n"
    )
    names = [request.name for request in remaining(parse_module(text))]
    assert names.index("differentiate") < names.index("nd-expand") and names.count("set-target") == 1
    assert pipelines.check_order(names) is None


def test_lower_verifies_its_input():
    bad = (
        "func.func @f(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<2xf32> {\n"
        '  %0 = "nd.add"(%x, %y) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>\n'
        "  return %0 : tensor<2xf32>\n}\n"
    )
    with pytest.raises(GradirError) as caught:
        lower(bad)
    assert caught.value.part == "graph" and "nd.add" in str(caught.value) and ":2:" in caught.value.location


@pytest.mark.parametrize("stops", [False, True])
def test_errors_that_a_pass_reports_become_one_error(monkeypatch, stops):
    class Complaining(Pass):
        NAME, ANCHOR = "cse", "func.func"

        def apply(self, op, context):
            context.diagnostics.error(op, "is not to my taste")
            context.diagnostics.error(op, "really")
            if stops:
                raise DiagnosedError

    monkeypatch.setitem(passes.PASSES, "cse", (Complaining, "complains"))
    with pytest.raises(GradirError, match="is not to my taste") as caught:
        lower(SIGMOID, last="tensor")
    assert caught.value.function == "@f" and caught.value.location == "<text>:2:1" and caught.value.hint == "1 more: <text>:2:1: really"


def test_an_error_of_ours_inside_a_report_keeps_its_code(monkeypatch):
    mine = GradirError("no", part="operator", code="OP099")

    class Complaining(Pass):
        NAME = "cse"

        def apply(self, op, context):
            context.diagnostics.exception(mine, op)

    monkeypatch.setitem(passes.PASSES, "cse", (Complaining, "complains"))
    with pytest.raises(GradirError) as caught:
        lower(SIGMOID, last="tensor")
    assert caught.value is mine
