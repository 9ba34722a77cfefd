"""gradir-ptx: kernels run on arrays of the command line, what a text holds, exit codes, wrong command lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gradir.errors import GradirError
from gradir.tools.kernel_arguments import read_argument
from gradir.tools.ptx import run
from tests.ptx.hopper import COLUMNS, DEPTH, GEMM, ROWS, SHARED
from tests.ptx.kernels import SAXPY

Capture = pytest.CaptureFixture[str]
FOREIGN = Path(__file__).parents[1] / "ptx" / "foreign"
ARGS = ["--arg", "f32[8]=iota", "--arg", "f32[8]=1", "--arg", "f32=2.5", "--arg", "u32=8"]


def saxpy(folder: Path, text: str = SAXPY) -> str:
    path = folder / "k.ptx"
    path.write_text(text)
    return str(path)


def test_arrays_that_a_kernel_changes_are_shown(tmp_path: Path, capsys: Capture) -> None:
    assert run(["run", saxpy(tmp_path), "--block", "32", *ARGS, "--seed", "1"]) == 0
    assert capsys.readouterr().out == "1: 8xf32=[1.0,3.5,6.0,8.5,11.0,13.5,16.0,18.5]\n"


def test_files_in_and_out(tmp_path: Path, capsys: Capture) -> None:
    np.save(tmp_path / "x.npy", np.full((2, 4), 3, np.float32))
    args = ["--arg", f"f32[2,4]=@{tmp_path / 'x.npy'}", *ARGS[2:], "--out", f"1={tmp_path / 'y.npy'}", "-e", "k", "--grid", "2,1"]
    assert run(["run", saxpy(tmp_path), "--block", "4", *args]) == 0
    assert capsys.readouterr().out == ""
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.full(8, 8.5, np.float32))


def test_reports_end_with_1_unless_nobody_checks(tmp_path: Path, capsys: Capture) -> None:
    path = saxpy(tmp_path, SAXPY.replace("setp.ge.u32 %p1", "setp.gt.u32 %p1"))
    assert run(["run", path, "--block", "32", *ARGS]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("1: 8xf32=") and "gradir-ptx: out of bounds: 4 bytes at offset 32 of x" in err
    assert run(["run", path, "--block", "32", "--no-check", *ARGS]) == 0


def test_undefined_arrays_structures_and_what_kernels_print(capsys: Capture) -> None:
    line = "bytes=" + np.array([0.5, 1.25], np.float32).tobytes().hex() + "03000000" + "00000000" + np.float64(2.5).tobytes().hex()
    args = ["--arg", "f32[4]=[1,2,3,4]", "--arg", "f32[4]=undefined", "--arg", "s32[4]=zeros", "--arg", line, "--arg", "s32=4"]
    assert run(["run", str(FOREIGN / "functions.ptx"), "--block", "32", *args]) == 0
    out = capsys.readouterr().out
    assert "thread 3 has 4.000000 and a word\n" in out and "\n1: 4xf32=[9.625,24.378906,10.125," in out


def test_advice(capsys: Capture) -> None:
    args = ["--arg", "f32[64,64]=random(0)", "--arg", "f32[64,64]=zeros", "--arg", "s32=64", "--arg", "s32=64", "--out", "1=/dev/null"]
    assert run(["run", str(FOREIGN / "transpose.ptx"), "--grid", "2,2", "--block", "32,8", "--advice", *args[:-2]]) == 0
    assert capsys.readouterr().err == ""
    strided = [*args[:4], "--arg", "s32=63", "--arg", "s32=63"]
    assert run(["run", str(FOREIGN / "transpose.ptx"), "--grid", "2,2", "--block", "32,8", "--advice", *strided]) == 0
    assert "sectors of 32 bytes" in capsys.readouterr().err


def test_list(tmp_path: Path, capsys: Capture) -> None:
    assert run(["list", str(FOREIGN / "functions.ptx")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("PTX 9.0 for sm_120, 1 kernel\n") and "  3: .b8 functions_param_3[24], aligned to 8\n" in out
    assert "function _Z9fibonaccii: " in out and "local memory: 80 bytes" in out
    assert run(["list", str(FOREIGN / "stencil.ptx")]) == 0
    assert "shared memory: 0 bytes and what the launch gives" in capsys.readouterr().out
    assert run(["list", saxpy(tmp_path, SAXPY.replace("fma.rn.f32", "tex.2d.v4"))]) == 1
    assert "  not emulated: tex.2d.v4 (line " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--block", "32", *ARGS[:-2]], "OP064"),
        (["--block", "32", "-e", "other", *ARGS], "OP064"),
        (["--block", "32", *ARGS[:-1], "u32=-1"], "whole numbers from 0 to 4294967295"),
        (["--block", "32", *ARGS, "--out", "2=y.npy"], "there is no array 2"),
        (["--block", "32", *ARGS[:-1], "b7=1"], "RT051"),
        (["--block", "32", *ARGS[:-1], "u32[2]=@missing.npy"], "a file that numpy.save wrote"),
        (["--block", "32", *ARGS[:-1], "bytes=xyz"], "hexadecimal digits or @FILE"),
        (["--block", "32", *ARGS[:-1], "u32[2]=[1,2,3]"], "shape [3]"),
    ],
)
def test_wrong_command_lines(tmp_path: Path, capsys: Capture, arguments: list[str], message: str) -> None:
    assert run(["run", saxpy(tmp_path), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("gradir-ptx: error: ") and message in err


@pytest.mark.parametrize("arguments", [["run", "missing.ptx", "--block", "1"], ["list", "missing.ptx"]])
def test_missing_files(capsys: Capture, arguments: list[str]) -> None:
    assert run(arguments) == 2 and "missing.ptx" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["run", "k.ptx"], ["run", "k.ptx", "--block", "0"], ["run", "k.ptx", "--block", "1", "--out", "y.npy"], []]
)
def test_argparse_refuses(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as end:
        run(arguments)
    assert end.value.code == 2


def test_arguments_of_every_form() -> None:
    for text, expected in {
        "f16[2]=[1.5,inf]": np.array([1.5, np.inf], np.float16), "u8[2x2]=7": np.full((2, 2), 7, np.uint8), "s64=-3": np.int64(-3),
        "bf16[3]=iota": np.arange(3), "u64=0": np.uint64(0),
    }.items():  # fmt: skip
        found = read_argument(text).value
        np.testing.assert_array_equal(np.asarray(found, np.float64), np.asarray(expected, np.float64))
    assert read_argument("f32[4]=undefined").undefined and not read_argument("f32[4]=random(3)").undefined
    with pytest.raises(GradirError) as caught:
        read_argument("f32=[1,")
    assert caught.value.code == "RT051" and caught.value.expected and caught.value.found


def test_tensor_maps(tmp_path: Path, capsys: Capture) -> None:
    m, n, k = 128, 64, 64
    random = np.random.default_rng(0)
    a, b = random.integers(-4, 4, (m, k)).astype(np.float32), random.integers(-4, 4, (n, k)).astype(np.float32)
    maps: list[str] = []
    for name, array, rows in (("a", a, ROWS), ("b", b, COLUMNS)):
        np.save(tmp_path / f"{name}.npy", (array.view(np.uint32) >> 16).astype(np.uint16))  # the bits of bf16
        maps += ["--arg", f"bf16[{array.shape[0]},{k}]=@{tmp_path}/{name}.npy;box={rows},{DEPTH};swizzle=128"]
    maps += ["--arg", f"f32[{m},{n}]=undefined;box=64,{COLUMNS};fill=zero", "--arg", "u32=1"]
    line = ["run", saxpy(tmp_path, GEMM), "--block", "384", "--shared", str(SHARED), *maps, "--out", f"2={tmp_path}/c.npy"]
    assert run(line) == 0, capsys.readouterr().err
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), a @ b.T)
    assert run([*line[:6], "--arg", f"bf16[128,64]=zeros;box={ROWS},64;swizzle=64", *maps[2:]]) != 0


def test_a_box_is_of_an_array() -> None:
    with pytest.raises(GradirError, match="RT051"):
        read_argument("u32=1;box=8")
