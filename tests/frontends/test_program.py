"""Modules that came as IR, used from Python: called, compiled for each target, differentiated, called inside traced functions."""

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError
from gradir.frontends.python.program import Program
from gradir.frontends.stablehlo import import_text
from gradir.ir.text import parse_module, print_module

TEXT = """
func.func @loss(%w: tensor<3xf32>, %x: tensor<3xf32>) -> tensor<f32> {
  %y = func.call @inner(%w, %x) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %s = nd.reduce_sum %y dims [0] : tensor<3xf32> -> tensor<f32>
  return %s : tensor<f32>
}
func.func private @inner(%w: tensor<3xf32>, %x: tensor<3xf32>) -> tensor<3xf32> {
  %y = nd.mul %w, %x : tensor<3xf32>
  %z = nd.mul %y, %w : tensor<3xf32>
  return %z : tensor<3xf32>
}
func.func @two(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %y = nd.neg %x : tensor<3xf32>
  return %x, %y : tensor<3xf32>, tensor<3xf32>
}
"""
W, X = np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32)


@pytest.fixture
def module() -> Program:
    return gd.parse(TEXT, "loss.mlir")


def test_functions_run_by_name(module: Program) -> None:
    assert module.functions == ("loss", "two")
    assert module["loss"](W, X) == 4 + 20 + 54
    first, second = module["two"](X)
    np.testing.assert_array_equal(first, -second)
    np.testing.assert_array_equal(module["inner"](W, X), W * W * X)  # private ones too


@pytest.mark.parametrize("target", ["cpu", "host", "reference", "cuda:emulated"])
def test_every_target_gives_the_same(module: Program, target: str) -> None:
    compiled = gd.compile(module, target=target)
    assert compiled["loss"](W, X) == 78
    assert [tuple(r) for r in compiled["two"](X)] == [(4, 5, 6), (-4, -5, -6)]


def test_gradients_of_its_functions(module: Program) -> None:
    np.testing.assert_array_equal(gd.grad(module["loss"])(W, X), 2 * W * X)
    dw, dx = gd.grad(module["loss"], argnums=(0, 1))(W, X)
    np.testing.assert_array_equal(dw, 2 * W * X)
    np.testing.assert_array_equal(dx, W * W)
    value, gradient = gd.value_and_grad(module["loss"], argnums=1)(W, X)
    assert value == 78
    np.testing.assert_array_equal(gradient, W * W)
    results, pullback = gd.vjp(module["two"], X)
    np.testing.assert_array_equal(results[1], -X)
    np.testing.assert_array_equal(pullback((W, 2 * W))[0], -W)
    twice = gd.grad(lambda w, x: gd.sum(gd.grad(module["loss"])(w, x)))
    np.testing.assert_array_equal(twice(W, X), 2 * X)


def test_gradient_of_imported_stablehlo() -> None:
    text = (
        "func.func public @main(%x: tensor<f64>) -> tensor<f64> {\n  %y = stablehlo.sine %x : tensor<f64>\n  return %y : tensor<f64>\n}\n"
    )
    module = import_text(text)
    assert gd.grad(module["main"])(np.float64(0.5)) == pytest.approx(np.cos(0.5))
    assert gd.compile(module, target="reference")["main"](np.float64(0.5)) == pytest.approx(np.sin(0.5))


def test_traced_functions_call_it_and_share_one_copy(module: Program) -> None:
    @gd.jit
    def step(w: gd.Array, x: gd.Array) -> gd.Array:
        return w - 0.5 * gd.grad(module["loss"])(w, x) + module["inner"](w, x)

    np.testing.assert_array_equal(step(W, X), W - W * X + W * W * X)
    assert print_module(step.lower(W, X)).count("func.func private @inner") == 1
    with gd.eager():
        np.testing.assert_array_equal(step(W, X), W - W * X + W * W * X)


def test_it_stays_a_module(module: Program) -> None:
    assert print_module(module) == print_module(parse_module(TEXT))
    assert isinstance(module.clone(), Program)
    assert repr(module["two"]) == "<gradir function @two: (tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)>"


def refused(code: str, call: object, *arguments: object, **options: object) -> GradirError:
    with pytest.raises(GradirError) as caught:
        call(*arguments, **options)  # pyright: ignore[reportCallIssue]  a callable
    assert caught.value.code == code
    return caught.value


def test_mistakes_are_explained(module: Program) -> None:
    error = refused("GR052", module.__getitem__, "nothing")
    assert "@loss, @inner, @two" in error.expected
    refused("GR052", gd.compile(module, target="reference").__getitem__, "nothing")
    refused("GR104", gd.compile, module, W)
    refused("GR119", gd.grad(module["loss"]), W)
    error = refused("GR107", gd.grad(module["loss"]), W, X.astype(np.float64))
    assert (error.expected, error.found) == ("tensor<3xf32>", "tensor<3xf64>")


@pytest.mark.parametrize("target", ["cpu", "reference", "cuda:emulated"])
def test_results_have_the_types_of_level_1_on_every_target(target: str) -> None:
    """Lower levels have pairs for complex numbers, and integers without signs."""
    text = """func.func @main(%z: tensor<2xcomplex<f32>>, %s: tensor<complex<f64>>, %u: tensor<3xui8>)
        -> (tensor<2xcomplex<f32>>, tensor<complex<f64>>, tensor<3xui8>) {
      %a = nd.add %z, %z : tensor<2xcomplex<f32>>
      %b = nd.mul %s, %s : tensor<complex<f64>>
      %c = nd.add %u, %u : tensor<3xui8>
      return %a, %b, %c : tensor<2xcomplex<f32>>, tensor<complex<f64>>, tensor<3xui8>
    }"""
    z, s, u = np.array([1 + 2j, 3j], np.complex64), np.array(2 + 1j), np.array([1, 100, 255], np.uint8)
    found = gd.compile(gd.parse(text), target=target)["main"](z, s, u)
    for value, wanted in zip(found, (2 * z, s * s, np.array([2, 200, 254], np.uint8)), strict=True):
        assert value.dtype == wanted.dtype and value.shape == wanted.shape
        np.testing.assert_allclose(value, wanted)
