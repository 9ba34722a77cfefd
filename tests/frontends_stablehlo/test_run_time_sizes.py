"""StableHLO with `?`: programs that JAX exports with symbolic shapes, and the ops that take a shape as an operand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradir
from gradir.errors import GradirError
from gradir.frontends.stablehlo import import_text

with np.load(Path(__file__).parent / "jax_symbolic.npz") as file:
    RECORDED = dict(file)
PROGRAMS = sorted({key.partition("/")[0] for key in RECORDED})


def arrays(name: str, case: int, what: str) -> list[Any]:
    prefix = f"{name}/{case}/{what}/"
    return [RECORDED[f"{prefix}{i}"] for i in range(sum(key.startswith(prefix) for key in RECORDED))]


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_jax_programs_at_several_sizes(name: str, target: str) -> None:
    main = gradir.compile(import_text(str(RECORDED[f"{name}/text"])), target=target)["main"]
    case = 0
    while inputs := arrays(name, case, "in"):
        found = main(*inputs)
        for x, y in zip(found if isinstance(found, tuple | list) else [found], arrays(name, case, "out"), strict=True):
            assert x.shape == y.shape and x.dtype == y.dtype
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)
        case += 1
    assert case


def test_names_and_limits_of_jax() -> None:
    text = str(import_text(str(RECORDED["constraints/text"])))
    assert 'tensor<?x8xf32, ["b", ""]>' in text and "gradir.sizes = {b = {min = 4 : i64, multiple = 2 : i64}}" in text
    assert 'tensor<2x?xf32, ["", "4*b"]>' in text and "nd.assert" not in text
    assert 'tensor<?x4xf32, ["2*b", ""]>' in str(import_text(str(RECORDED["twice/text"]))) or "floordiv" in str(
        import_text(str(RECORDED["twice/text"]))
    )


def main_of(body: str, arguments: str, result: str) -> Any:
    text = f"func.func @main({arguments}) -> {result} {{\n  {body}\n}}"
    return import_text(text)


def run(module: Any, *inputs: Any) -> list[Any]:
    """The results of the reference and of compiled code, which are equal."""
    found = [gradir.compile(module, target=target, cache=False)["main"](*inputs) for target in ("reference", "cpu")]
    np.testing.assert_array_equal(*found)
    assert found[0].shape == found[1].shape
    return found[0]


V = np.arange(6, dtype=np.float32)


def test_get_dimension_size() -> None:
    module = main_of(
        "%0 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<4x?xf32>) -> tensor<i32>\n  return %0 : tensor<i32>",
        "%x: tensor<4x?xf32>",
        "tensor<i32>",
    )
    assert run(module, np.zeros((4, 7), np.float32)) == 7


SHAPE_OPERANDS: dict[str, tuple[str, str, str, Callable[[Any], Any]]] = {
    "reshape": (
        "stablehlo.dynamic_reshape %x, %s : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>",
        "[2, 3]",
        "tensor<?x?xf32>",
        lambda s: V.reshape(s),
    ),
    "iota": (
        "stablehlo.dynamic_iota %s, dim = 1 : (tensor<2xi32>) -> tensor<?x?xi32>",
        "[2, 3]",
        "tensor<?x?xi32>",
        lambda s: np.broadcast_to(np.arange(s[1], dtype=np.int32), s),
    ),
    "broadcast": (
        "stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>",
        "[2, 6]",
        "tensor<?x?xf32>",
        lambda s: np.broadcast_to(V, s),
    ),
}


@pytest.mark.parametrize("known", [True, False], ids=["constant shape", "run-time shape"])
@pytest.mark.parametrize("name", SHAPE_OPERANDS)
def test_shapes_as_operands(name: str, known: bool) -> None:
    op, shape, result, expected = SHAPE_OPERANDS[name]
    wanted = np.array(eval(shape), np.int32)  # a list of numbers written above
    given = f"%s = stablehlo.constant dense<{shape}> : tensor<2xi32>\n  " if known else ""
    arguments = "%x: tensor<?xf32>" if known else "%x: tensor<?xf32>, %s: tensor<2xi32>"
    module = main_of(f"{given}%0 = {op}\n  return %0 : {result}", arguments, result)
    if known:
        np.testing.assert_array_equal(run(module, V), expected(tuple(wanted)))
    else:
        reference = gradir.compile(module, target="reference")["main"]
        np.testing.assert_array_equal(reference(V, wanted), expected(tuple(wanted)))


BOUNDS = """%c = stablehlo.constant dense<1> : tensor<1xi32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  """


def test_real_dynamic_slice() -> None:
    op = "stablehlo.real_dynamic_slice %x, %c, %s, %t : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>"
    step = "%t = stablehlo.constant dense<2> : tensor<1xi32>\n  "
    module = main_of(f"{BOUNDS}{step}%0 = {op}\n  return %0 : tensor<?xf32>", "%x: tensor<?xf32>", "tensor<?xf32>")
    np.testing.assert_array_equal(run(module, V), V[1::2])


def test_dynamic_pad() -> None:
    op = (
        "stablehlo.dynamic_pad %x, %v, %c, %s, %z : "
        "(tensor<?xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>"
    )
    zero = "%z = stablehlo.constant dense<0> : tensor<1xi32>\n  %v = stablehlo.constant dense<9.0> : tensor<f32>\n  "
    module = main_of(f"{BOUNDS}{zero}%0 = {op}\n  return %0 : tensor<?xf32>", "%x: tensor<?xf32>", "tensor<?xf32>")
    np.testing.assert_array_equal(run(module, V), np.pad(V, (1, 6), constant_values=9))


def test_sizes_that_have_to_be_equal_are_asserted() -> None:
    module = main_of(
        "%0 = stablehlo.add %x, %y : tensor<?xf32>\n  return %0 : tensor<?xf32>", "%x: tensor<?xf32>, %y: tensor<?xf32>", "tensor<?xf32>"
    )
    assert "nd.assert" in str(module)
    np.testing.assert_array_equal(run(module, V, V), V + V)
    with pytest.raises(GradirError, match="sizes y_0 and x_0 are equal") as caught:
        gradir.compile(module, target="cpu")["main"](V, V[:3])
    assert caught.value.code == "RT020"


def test_what_has_no_counterpart_is_named() -> None:
    with pytest.raises(GradirError, match="run-time bounds") as caught:
        main_of(
            "%0 = stablehlo.real_dynamic_slice %x, %a, %a, %a : "
            "(tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>\n  return %0 : tensor<?xf32>",
            "%x: tensor<?xf32>, %a: tensor<1xi32>",
            "tensor<?xf32>",
        )
    assert caught.value.code == "GR120"
