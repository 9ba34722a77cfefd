"""Derivatives of functions written at level 2: each program of `programs/structured`, and the level-1 equivalents."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from gradir.autodiff.differentiate import Differentiate
from gradir.dialects.types import shape_of, tensor
from gradir.dialects.upstream import linalg, scf
from gradir.driver.compile import compile_module
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, print_module, verify_module
from gradir.lowering.convert_nd_to_linalg import ConvertNdToLinalg
from gradir.reference import run
from tests.autodiff.gradients import Array, check_both_modes, cotangents, error, reverse, with_both_modes, with_vjp

PROGRAMS = sorted((Path(__file__).parent / "programs" / "structured").glob("*.mlir"))
NAMES = [path.stem for path in PROGRAMS]
SECOND_ORDER = {"matmul", "product", "branch_in_body"}
"""In the fixed sample; the others are `full`."""


def function(text: str) -> FuncOp:
    (f,) = [op for op in parse_module(text).body.block.ops if isinstance(op, FuncOp) and op.sym_name.data == "f"]
    return f


def arguments(text: str, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape_of(kind)) * 0.5 for kind in function(text).function_type.inputs.data]  # pyright: ignore[reportArgumentType, reportCallIssue]


@pytest.mark.parametrize("path", PROGRAMS, ids=NAMES)
def test_slopes_of_programs(path: Path) -> None:
    text = path.read_text()
    check_both_modes(text, arguments(text))


@pytest.mark.parametrize("path", [pytest.param(p, marks=() if p.stem in SECOND_ORDER else pytest.mark.full) for p in PROGRAMS], ids=NAMES)
def test_second_derivatives_of_programs(path: Path) -> None:
    """The generated nests, read back from text, are differentiated in both modes."""
    text = path.read_text()
    inputs = arguments(text)
    once = print_module(with_vjp(text, range(len(inputs)))).replace("@f", "@primal").replace("@vjp", "@f")
    check_both_modes(once, [*inputs, *cotangents(text, inputs, 3)])


@pytest.mark.parametrize(
    "path", [pytest.param(p, marks=() if p.stem in {"convolution", "recurrence"} else pytest.mark.full) for p in PROGRAMS], ids=NAMES
)
def test_compiled_derivatives_of_programs(path: Path) -> None:
    text = path.read_text()
    inputs = arguments(text)
    module = with_both_modes(text, range(len(inputs)))
    compiled = compile_module(module.clone(), cache=False)
    calls = {"f": inputs, "vjp": [*inputs, *cotangents(text, inputs, 1)], "jvp": [*inputs, *(0.5 - x for x in inputs)]}
    for name, given in calls.items():
        for found, want in zip(compiled[name].flat(*given), run(module, name, given), strict=True):
            assert error(np.asarray(found), np.asarray(want)) < 1e-12


@pytest.mark.parametrize(
    "path", [pytest.param(p, marks=() if p.stem in {"softmax", "gather"} else pytest.mark.full) for p in PROGRAMS], ids=NAMES
)
@pytest.mark.parametrize("which", ["all", "first", "last"])
def test_batches_of_programs(path: Path, which: str) -> None:
    """`ad.batch` gives what one call for each element gives; its gradient is that of the calls."""
    text = path.read_text()
    kinds, outputs = function(text).function_type.inputs.data, function(text).function_type.outputs.data
    on = [which == "all" or k == (0 if which == "first" else len(kinds) - 1) for k in range(len(kinds))]
    wide = [tensor(k.element_type, (3, *shape_of(k))) if flag else k for k, flag in zip(kinds, on)]  # pyright: ignore[reportAttributeAccessIssue]
    results = ", ".join(str(tensor(k.element_type, (3, *shape_of(k)))) for k in outputs)  # pyright: ignore[reportAttributeAccessIssue]
    names = ", ".join(f"%a{k}" for k in range(len(kinds)))
    signature = ", ".join(f"%a{k}: {kind}" for k, kind in enumerate(wide))
    found = ", ".join(f"%r{k}" for k in range(len(outputs)))
    over = ", ".join(str(k) for k, flag in enumerate(on) if flag)
    request = f"{found} = ad.batch @one({names}) over [{over}] : ({', '.join(map(str, wide))}) -> ({results})"
    batched = text.replace("@f", "@one") + f"func.func @f({signature}) -> ({results}) {{\n  {request}\n  return {found} : {results}\n}}\n"
    module = parse_module(batched)
    Differentiate().apply(module, PassContext())
    verify_module(module)
    rng = np.random.default_rng(4)
    inputs = [rng.standard_normal(shape_of(kind)) * 0.5 for kind in wide]  # pyright: ignore[reportArgumentType, reportCallIssue]
    singles = [run(parse_module(text), "f", [x[n] if flag else x for x, flag in zip(inputs, on)]) for n in range(3)]
    for k, many in enumerate(run(module, "f", inputs)):
        assert error(np.asarray(many), np.stack([one[k] for one in singles])) < 1e-14


# against level 1 -----------------------------------------------------------------------------------------------------

ND = {
    "matmul": """
func.func @f(%x: tensor<3x4xf64>, %y: tensor<4x5xf64>, %z: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %0 = nd.dot_general %x, %y contract [1] x [0] : tensor<3x4xf64>, tensor<4x5xf64> -> tensor<3x5xf64>
  %1 = nd.add %0, %z : tensor<3x5xf64>
  return %1 : tensor<3x5xf64>
}
""",
    "convolution": """
func.func @f(%x: tensor<1x5x6x2xf64>, %k: tensor<3x2x2x3xf64>) -> tensor<1x2x4x3xf64> {
  %0 = nd.conv_general %x, %k strides [2, 1] rhs_dilation [1, 2] : tensor<1x5x6x2xf64>, tensor<3x2x2x3xf64> -> tensor<1x2x4x3xf64>
  return %0 : tensor<1x2x4x3xf64>
}
""",
    "softmax": """
func.func @f(%x: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %0 = nd.softmax %x dim 1 : tensor<3x5xf64>
  return %0 : tensor<3x5xf64>
}
""",
    "max_pooling": """
func.func @f(%x: tensor<4x7xf64>) -> tensor<3x3xf64> {
  %0 = nd.reduce_window max, %x window [2, 3] strides [1, 2] : tensor<4x7xf64> -> tensor<3x3xf64>
  return %0 : tensor<3x3xf64>
}
""",
    "product": """
func.func @f(%x: tensor<3x4xf64>, %z: tensor<3xf64>) -> tensor<3xf64> {
  %0 = nd.reduce_prod %x dims [1] : tensor<3x4xf64> -> tensor<3xf64>
  %1 = nd.mul %0, %z : tensor<3xf64>
  return %1 : tensor<3xf64>
}
""",
}


@pytest.mark.parametrize("name", ND)
def test_gradients_equal_those_of_level_1(name: str) -> None:
    text = next(path for path in PROGRAMS if path.stem == name).read_text()
    inputs = arguments(text)
    cts = cotangents(text, inputs, 5)
    wrt = range(len(inputs))
    for found, want in zip(reverse(text, inputs, cts, wrt), reverse(ND[name], inputs, cts, wrt), strict=True):
        assert error(np.asarray(found), np.asarray(want)) < 1e-13


def test_levels_mix_in_one_function() -> None:
    text = """
#id = affine_map<(i) -> (i)>
func.func @f(%x: tensor<4xf64>, %w: tensor<4xf64>) -> tensor<f64> {
  %h = nd.tanh %x : tensor<4xf64>
  %e = tensor.empty() : tensor<4xf64>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%h, %w : tensor<4xf64>, tensor<4xf64>)
    outs(%e : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %p = arith.mulf %a, %b : f64
    linalg.yield %p : f64
  } -> tensor<4xf64>
  %z = arith.addf %y, %h : tensor<4xf64>
  %q = nd.mul %z, %y : tensor<4xf64>
  %l = nd.reduce_sum %q dims [0] : tensor<4xf64> -> tensor<f64>
  return %l : tensor<f64>
}
"""
    inputs = arguments(text)
    module = check_both_modes(text, inputs)
    compiled = compile_module(module.clone(), cache=False)["vjp"]
    given = [*inputs, np.ones(())]
    for found, want in zip(compiled.flat(*given), run(module, "vjp", given), strict=True):
        assert error(np.asarray(found), np.asarray(want)) < 1e-14


# structure -----------------------------------------------------------------------------------------------------------


def backward(name: str) -> FuncOp:
    text = next(path for path in PROGRAMS if path.stem == name).read_text()
    module = with_vjp(text, range(len(function(text).function_type.inputs.data)))
    (found,) = [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data.startswith("f.vjp")]
    return found


def test_the_derivative_of_a_contraction_is_two() -> None:
    """No loops, no selects: both are what a matrix product is made of."""
    nests = [op for op in backward("matmul").walk() if isinstance(op, linalg.GenericOp)]
    assert [[op.name for op in nest.body.block.ops] for nest in nests] == [["arith.mulf", "arith.addf", "linalg.yield"]] * 3


def test_overlapping_windows_are_loops_over_the_window_alone() -> None:
    """3 x 2 trips around a nest over images, positions and channels."""
    loops = [op for op in backward("convolution").walk() if isinstance(op, scf.ForOp)]
    assert len(loops) == 2
    assert sum(isinstance(op, linalg.GenericOp) for op in loops[0].walk()) == 1


def test_dynamic_sizes() -> None:
    text = """
#x = affine_map<(i, k) -> (i + k)>
#k = affine_map<(i, k) -> (k)>
#y = affine_map<(i, k) -> (i)>
func.func @f(%x: tensor<?xf64, ["n+2"]>, %k: tensor<3xf64>, %z: tensor<?xf64, ["n"]>) -> tensor<?xf64, ["n"]> {
  %r = linalg.generic {indexing_maps = [#x, #k, #y], iterator_types = ["parallel", "reduction"]}
    ins(%x, %k : tensor<?xf64, ["n+2"]>, tensor<3xf64>) outs(%z : tensor<?xf64, ["n"]>) {
  ^bb0(%c: f64, %w: f64, %acc: f64):
    %e = math.exp %c : f64
    %p = arith.mulf %e, %w : f64
    %s = arith.addf %acc, %p : f64
    linalg.yield %s : f64
  } -> tensor<?xf64, ["n"]>
  return %r : tensor<?xf64, ["n"]>
}
"""
    for n in (1, 5):
        rng = np.random.default_rng(n)
        inputs = [rng.standard_normal(k) for k in (n + 2, 3, n)]
        module = check_both_modes(text, inputs)
    compiled = compile_module(module.clone(), cache=False)["vjp"]
    for n in (1, 6):
        given = [np.ones(n + 2), np.arange(3.0), np.ones(n), np.ones(n)]
        for found, want in zip(compiled.flat(*given), run(module, "vjp", given), strict=True):
            assert error(np.asarray(found), np.asarray(want)) < 1e-14


@pytest.mark.parametrize(
    "path", [pytest.param(p, marks=() if p.stem in {"slices", "convolution"} else pytest.mark.full) for p in PROGRAMS], ids=NAMES
)
def test_upstream_reads_derivatives(path: Path) -> None:
    """Once `convert-nd-to-linalg` has written sums and stacks as nests, what is generated is level 2 of upstream's dialects."""
    if shutil.which("mlir-opt-22") is None:
        pytest.skip("mlir-opt-22 is not installed")
    text = path.read_text()
    module = with_both_modes(text, range(len(arguments(text))))
    ConvertNdToLinalg().apply(module, PassContext())
    command = ["mlir-opt-22", "-o", "/dev/null"]
    done = subprocess.run(command, input=print_module(module), text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
