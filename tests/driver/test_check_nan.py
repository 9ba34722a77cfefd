"""check_nan: the first op that makes NaN or infinity of finite operands, its line, its operands, the round of each loop around it."""

from __future__ import annotations

import gc
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import gradir as gd
from gradir.driver.check_nan import compile_checked
from gradir.driver.check_nan.watch import watches
from gradir.errors import GradirError
from gradir.tools.run import run

Capture = pytest.CaptureFixture[str]

PROGRAM = """func.func private @loss(%x: tensor<3xf32>) -> tensor<f32> {
  %l = nd.log %x : tensor<3xf32>
  %s = nd.reduce_sum %l dims [0] : tensor<3xf32> -> tensor<f32>
  return %s : tensor<f32>
}
func.func @main(%x: tensor<3xf32>) -> (tensor<f32>, tensor<3xf32>) {
  %l, %g = ad.value_and_grad @loss(%x) wrt [0] : (tensor<3xf32>) -> (tensor<f32>, tensor<3xf32>)
  return %l, %g : tensor<f32>, tensor<3xf32>
}
"""

NEST = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %zero = arith.constant 0 : index
  %three = arith.constant 3 : index
  %one = arith.constant 1 : index
  %ten = nd.constant splat(10.0 : f32) : tensor<2xf32>
  %r = scf.for %i = %zero to %three step %one iter_args(%s = %x) -> (tensor<2xf32>) {
    %w, %k = scf.while (%v = %s, %n = %zero) : (tensor<2xf32>, index) -> (tensor<2xf32>, index) {
      %more = arith.cmpi slt, %n, %three : index
      scf.condition(%more) %v, %n : tensor<2xf32>, index
    } do {
    ^bb0(%v: tensor<2xf32>, %n: index):
      %e = nd.mul %v, %ten : tensor<2xf32>
      %n2 = arith.addi %n, %one : index
      scf.yield %e, %n2 : tensor<2xf32>, index
    }
    scf.yield %w : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}
"""


def checked(text: str, *inputs: np.ndarray, name: str = "main"):
    """Results, findings and notes of one run."""
    module, watch = compile_checked(text)
    watch.begin()
    return module[name].flat(*inputs), watch.findings, watch.notes


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_the_first_op_its_element_and_operand() -> None:
    (value, grad), found, notes = checked(PROGRAM, f32(1, 0, 2))
    assert value == -np.inf and np.array_equal(grad, f32(1, np.inf, 0.5))
    first, second = found
    assert (first.site.op, first.value, first.index, first.count, first.size) == ("nd.log", "-inf", (1,), 1, 3)
    assert first.operands == ("0.0",) and first.site.location == "<text>:2:8"
    assert first.text == "nd.log makes -inf of finite operands at element [1] (1 of 3): #0 = 0.0"
    assert second.site.op == "nd.div" and second.site.location == "<text>:2:8"  # its derivative, at the same line
    assert not notes


def test_nothing_where_nothing_is_wrong() -> None:
    (value, _), found, notes = checked(PROGRAM, f32(1, 2, 3))
    assert np.isfinite(value) and not found and not notes


def test_what_comes_in_is_no_find() -> None:
    _, found, _ = checked(PROGRAM, f32(1, np.nan, np.inf))
    assert not found


def test_rounds_of_nested_loops() -> None:
    """1e33 * 10**3 per round of the outer loop: the sixth product of all is too large."""
    _, (found,), _ = checked(NEST, f32(1, 1e33))
    assert found.index == (1,) and found.value == "inf" and found.execution == 5
    assert [number for _, number in found.rounds] == [1, 2]
    assert [place.partition(":")[2] for place, _ in found.rounds] == ["6:8", "7:14"]
    assert found.text.endswith("round 1 of the loop at <text>:6:8; round 2 of the loop at <text>:7:14")


@pytest.mark.parametrize(
    ("dtype", "line", "inputs", "op"),
    [
        ("f64", "nd.exp %x : tensor<2xf64>", [np.array([1.0, 800.0])], "nd.exp"),
        ("f16", "nd.exp %x : tensor<2xf16>", [np.array([1.0, 12.0], np.float16)], "nd.exp"),
        ("f32", "nd.rsqrt %x : tensor<2xf32>", [f32(1, 0)], "nd.rsqrt"),
        ("f32", "nd.softmax %x dim 0 : tensor<2xf32>", [f32(3, 4)], ""),
    ],
)
def test_types_and_composites(dtype: str, line: str, inputs: list[np.ndarray], op: str) -> None:
    text = f"func.func @main(%x: tensor<2x{dtype}>) -> tensor<2x{dtype}> {{\n  %0 = {line}\n  return %0 : tensor<2x{dtype}>\n}}\n"
    _, found, _ = checked(text, *inputs)
    assert [finding.site.op for finding in found] == ([op] if op else [])


def test_complex_results() -> None:
    text = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = nd.complex %x, %x : tensor<2xf32>
  %l = nd.log %c : tensor<2xcomplex<f32>>
  %r = nd.real %l : tensor<2xcomplex<f32>>
  return %r : tensor<2xf32>
}
"""
    _, (found,), _ = checked(text, f32(1, 0))
    assert found.site.op == "nd.log" and found.index[0] == 1


def test_zero_times_infinity_is_noted() -> None:
    text = """func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = nd.mul_strong %x, %y : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""
    (result,), found, (note,) = checked(text, f32(1, 0), f32(2, np.inf))
    assert np.array_equal(result, f32(2, 0)) and not found
    assert note.text == "nd.mul_strong meets 0 times inf (and gives 0) at element [1] (1 of 2): #0 = 0.0, #1 = inf"


def test_only_level_1() -> None:
    with pytest.raises(GradirError) as caught:
        compile_checked(
            "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { %e = tensor.empty() : tensor<2xf32> return %e : tensor<2xf32> }"
        )
    assert caught.value.code == "GR054" and caught.value.found == "level 2"


def test_a_watch_lives_as_long_as_somebody_asks_it() -> None:
    before = len(watches)
    module, watch = compile_checked(PROGRAM)
    assert len(watches) == before + 1
    del watch
    gc.collect()
    assert len(watches) == before
    module["main"].flat(f32(1, 0, 2))  # nobody looks: no harm


# -- from Python


def test_jit_raises_at_the_line_of_the_model() -> None:
    @gd.jit(check_nan=True)
    def model(x):
        def step(i, s):
            return gd.log(s)  # NaN in round 3

        return gd.fori_loop(0, 6, step, x)

    for _ in range(2):  # the second call takes the fast way in
        with pytest.raises(GradirError) as caught:
            model(f32(5000, 3))
        error = caught.value
        assert (error.code, error.part, error.op) == ("RT040", "runtime", "nd.log")
        file, line, _ = error.location.rsplit(":", 2)
        assert "NaN in round 3" in Path(file).read_text().splitlines()[int(line) - 1]
        assert re.search(r"nan of finite operands at element \[1\] \(1 of 2\): #0 = -2\.36\d+; round 3 of the loop", error.found)
    assert np.allclose(gd.jit(lambda x: gd.exp(x), check_nan=True)(f32(1, 2)), np.exp(f32(1, 2)))


def test_warnings_of_strong_zeros() -> None:
    g = gd.jit(gd.grad(lambda x: gd.sum(gd.sqrt(x * x))), check_nan=True)
    with pytest.raises(GradirError) as caught:  # 1/sqrt(0), in the derivative
        g(f32(4, 0))
    assert "meets 0 times inf" in caught.value.hint
    h = gd.jit(lambda x, y: gd.vjp(lambda a: a * y, x)[1](x)[0], check_nan=True)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        h(f32(1, 0), f32(2, np.inf))
    assert any("0 times inf" in str(warning.message) for warning in seen), [str(w.message) for w in seen]


# -- gradir-run


def file(tmp_path: Path, text: str) -> str:
    path = tmp_path / "model.mlir"
    path.write_text(text)
    return str(path)


def test_run(tmp_path: Path, capsys: Capture) -> None:
    path = file(tmp_path, PROGRAM)
    assert run([path, "--check-nan", "--input=3xf32=[1,0,2]"]) == 1
    out, err = capsys.readouterr()
    assert out == "f32=-inf\n3xf32=[1.0,inf,0.5]\n"
    assert err.startswith(f"{path}:2:8: error: nd.log makes -inf of finite operands at element [1] (1 of 3): #0 = 0.0 [runtime RT040]\n")
    assert run([path, "--check-nan", "--input=3xf32=[1,4,2]"]) == 0
    assert "no op makes NaN" in capsys.readouterr().err
    assert run([path, "--check-nan", "--input=3xf32=[1,nan,2]"]) == 0
    assert "input 0 is not finite already" in capsys.readouterr().err
    assert run([path, "--check-nan", "--target=reference", "--input=3xf32=1"]) == 1
    assert "GR054" in capsys.readouterr().err
