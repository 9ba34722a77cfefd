"""#target attributes: text, host detection, contradicting options."""

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from gradir.dialects.registry import make_context
from gradir.dialects.target import CpuTargetAttr, CudaTargetAttr, host_target, parse_target, target_of
from gradir.errors import GradirError
from gradir.ir.passes import PassContext
from gradir.lowering.set_target import SetTarget


def parse(text: str) -> ModuleOp:
    return Parser(make_context(), text).parse_module()


@pytest.mark.parametrize(
    "text",
    [
        '#target.cpu<"znver4", vector = 16, registers = 32, threads = 2>',
        '#target.cpu<"x86-64", features = "+sse4.1,-avx", vector = 4, triple = "x86_64-linux-gnu">',
        '#target.cuda<"sm_90", sms = 132>',
    ],
)
def test_text_round_trip(text: str) -> None:
    module = parse(f"module attributes {{gradir.target = {text}}} {{}}")
    assert str(module.attributes["gradir.target"]) == text


def test_unknown_field_is_a_parse_error() -> None:
    with pytest.raises(ParseError, match=r"#target.cpu has no field 'lanes', expected one of: features"):
        parse('module attributes {gradir.target = #target.cpu<"znver4", lanes = 16>} {}')


def test_unknown_field_in_python() -> None:
    with pytest.raises(ValueError, match=r"target.cpu has no field lanes"):
        CpuTargetAttr.of("znver4", lanes=16)
    with pytest.raises(ValueError, match=r"target.cuda has no field lanes"):
        CudaTargetAttr.of("sm_80", lanes=16)


def test_host() -> None:
    host = host_target()
    assert host.vector in (4, 8, 16) and host.threads >= 1 and host.l1 >= 8192 and host.l2 >= host.l1
    assert parse_target("host") == host == parse_target("cpu")


def test_named_processor() -> None:
    znver4, core2 = parse_target("cpu", "znver4"), parse_target("cpu", "core2", 3)
    assert isinstance(znver4, CpuTargetAttr) and (znver4.vector, znver4.registers) == (16, 32) and znver4.has("fma")
    assert isinstance(core2, CpuTargetAttr) and core2.vector == 4 and core2.threads == 3 and not core2.has("sse4.1")


def test_processors_of_another_kind() -> None:
    any_of_them, neoverse = parse_target("cpu:aarch64"), parse_target("cpu", "neoverse-n1")
    assert isinstance(any_of_them, CpuTargetAttr) and isinstance(neoverse, CpuTargetAttr)
    assert (any_of_them.cpu, neoverse.cpu) == ("generic", "neoverse-n1") and neoverse.triple.startswith("aarch64")
    assert neoverse.vector == 4 and neoverse.registers == 32 and neoverse.has("fma")


def test_features_override_the_name() -> None:
    target = CpuTargetAttr.of("znver4", features="-fma,+sse4a")
    assert not target.has("fma") and target.has("sse4a") and target.has("f16c")


def test_cuda() -> None:
    assert parse_target("cuda") == parse_target("cuda", "sm_80") != parse_target("cuda:sm_90")


@pytest.mark.parametrize(
    ("target", "cpu", "message"),
    [("tpu", "", "unknown target 'tpu'"), ("cpu", "znver9", "unknown processor 'znver9'"), ("cuda", "sm_81", "unknown CUDA architecture 'sm_81'"),
     ("host", "k8", "unknown host processor 'k8'")],
)  # fmt: skip
def test_unknown_target(target: str, cpu: str, message: str) -> None:
    with pytest.raises(GradirError, match=message) as caught:
        parse_target(target, cpu)
    assert caught.value.code == "OP041" and caught.value.expected and caught.value.found


def test_set_target_writes_once_and_keeps() -> None:
    module = parse("module {}")
    SetTarget(target="cpu", cpu="znver4").apply(module, PassContext())
    SetTarget().apply(module, PassContext())
    SetTarget(target="cpu").apply(module, PassContext())
    assert target_of(module) == parse_target("cpu", "znver4")


@pytest.mark.parametrize(
    ("present", "options", "conflict"),
    [
        ({"target": "cpu", "cpu": "k8"}, {"target": "cuda"}, "kind of machine"),
        ({"target": "cuda"}, {"target": "cpu"}, "kind of machine"),
        ({"target": "cuda"}, {"target": "cuda:sm_90"}, "architecture"),
        ({"target": "cpu", "cpu": "k8"}, {"target": "cpu", "cpu": "haswell"}, "processor"),
        ({"target": "cpu", "cpu": "k8"}, {"target": "host"}, "machine"),
        ({"target": "cpu", "cpu": "k8"}, {"threads": 7}, "number of threads"),
    ],
)
def test_contradicting_option(present: dict[str, str], options: dict[str, str], conflict: str) -> None:
    module = parse("module {}")
    SetTarget(**present).apply(module, PassContext())
    with pytest.raises(GradirError, match=f"already compiled for another {conflict}") as caught:
        SetTarget(**options).apply(module, PassContext())
    assert caught.value.code == "OP042" and "gradir.target" in caught.value.hint


def test_target_of_defaults_to_the_host() -> None:
    assert target_of(parse("module {}")) == host_target()
