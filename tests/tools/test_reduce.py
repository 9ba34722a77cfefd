"""gradir-reduce: what is left is the smallest program that still fails, it verifies, and the best result survives an interruption."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from gradir.errors import GradirError
from gradir.ir.text import parse_module, print_module
from gradir.tools.reduce import Progress, reduce_lines, reduce_module
from gradir.tools.reduce.command import _write, run

Capture = pytest.CaptureFixture[str]

PROGRAM = """func.func private @helper(%x: tensor<4x8xf64>) -> tensor<4x8xf64> {
  %0 = nd.tanh %x : tensor<4x8xf64>
  return %0 : tensor<4x8xf64>
}
func.func @unused(%x: tensor<4x8xf64>) -> tensor<4x8xf64> {
  %0 = nd.exp %x : tensor<4x8xf64>
  return %0 : tensor<4x8xf64>
}
func.func @f(%x: tensor<4x8xf64>, %y: tensor<4x8xf64>, %c: tensor<i1>) -> (tensor<4x8xf64>, tensor<4xf64>) {
  %p = tensor.extract %c[] : tensor<i1>
  %lb = arith.constant 0 : index
  %ub = arith.constant 5 : index
  %st = arith.constant 1 : index
  %h = func.call @helper(%x) : (tensor<4x8xf64>) -> tensor<4x8xf64>
  %r, %r2 = scf.for %i = %lb to %ub step %st iter_args(%a = %h, %b = %y) -> (tensor<4x8xf64>, tensor<4x8xf64>) {
    %q = scf.if %p -> (tensor<4x8xf64>) {
      %1 = nd.sin %a : tensor<4x8xf64>
      %2 = nd.cos %1 : tensor<4x8xf64>
      scf.yield %2 : tensor<4x8xf64>
    } else {
      %1 = nd.mul %a, %b : tensor<4x8xf64>
      scf.yield %1 : tensor<4x8xf64>
    }
    %m = nd.max %q, %b : tensor<4x8xf64>
    scf.yield %m, %b : tensor<4x8xf64>, tensor<4x8xf64>
  }
  %s = nd.reduce_sum %r dims [1] : tensor<4x8xf64> -> tensor<4xf64>
  return %r2, %s : tensor<4x8xf64>, tensor<4xf64>
}
"""


def left(text: str, *needed: str) -> str:
    """The reduction of `text` to a program that holds every one of `needed`; it verifies."""
    small = reduce_module(text, lambda candidate: all(part in candidate for part in needed))
    parse_module(small)
    return small


def names(text: str) -> list[str]:
    """The ops of a program; functions, terminators and constants left out."""
    found = re.findall(r"(?:nd|scf|arith|tensor|math|memref|ad)\.[a-z_]+(?= )", text)
    return [name for name in found if not name.endswith((".constant", ".yield"))]


@pytest.mark.parametrize("op", ["nd.cos", "nd.mul", "nd.tanh", "nd.exp", "nd.max"])
def test_one_op_is_left_alone_with_one_element(op: str) -> None:
    small = left(PROGRAM, op)
    assert names(small) == [op]
    assert small.count("func.func") == 1 and "tensor<1x1xf32>" in small and "4" not in small


def test_control_flow_goes_unless_it_is_needed() -> None:
    assert names(left(PROGRAM, "scf.for")) == ["scf.for"]
    assert "scf.for" not in left(PROGRAM, "scf.if")
    kept = left(PROGRAM, "scf.if", "nd.sin")
    assert "nd.cos" not in kept and "nd.mul" not in kept and "scf.for" not in kept


def test_a_call_stays_where_it_matters() -> None:
    small = left(PROGRAM, "func.call")
    assert names(small) == []
    assert small.count("func.func") == 2


def test_branches_and_trips() -> None:
    text = """func.func @f(%x: tensor<2xf32>, %i: index) -> tensor<2xf32> {
  %r = scf.index_switch %i -> tensor<2xf32>
  case 0 {
    %0 = nd.exp %x : tensor<2xf32>
    scf.yield %0 : tensor<2xf32>
  }
  default {
    %c = arith.constant 4 : index
    %z = arith.constant 0 : index
    %w, %n = scf.while (%v = %x, %k = %z) : (tensor<2xf32>, index) -> (tensor<2xf32>, index) {
      %more = arith.cmpi slt, %k, %c : index
      %b = nd.cos %v : tensor<2xf32>
      scf.condition(%more) %b, %k : tensor<2xf32>, index
    } do {
    ^bb0(%v: tensor<2xf32>, %k: index):
      %s = nd.sin %v : tensor<2xf32>
      %one = arith.constant 1 : index
      %k2 = arith.addi %k, %one : index
      scf.yield %s, %k2 : tensor<2xf32>, index
    }
    scf.yield %w : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}
"""
    assert names(left(text, "nd.exp")) == ["nd.exp"]
    assert names(left(text, "nd.cos")) == ["nd.cos"]
    assert names(left(text, "nd.sin")) == ["nd.sin"]
    assert "scf.index_switch" in left(text, "scf.while", "scf.index_switch")


def test_sizes_numbers_and_types() -> None:
    text = """func.func @f(%x: tensor<6x?xbf16, ["", "n"]>) -> tensor<6x?xbf16, ["", "n"]> {
  %0 = nd.reverse %x dims [0, 1] : tensor<6x?xbf16, ["", "n"]>
  return %0 : tensor<6x?xbf16, ["", "n"]>
}
"""
    assert "tensor<1x1xf32>" in left(text, "nd.reverse")
    text = """func.func @f() -> tensor<8xi64> {
  %0 = nd.constant dense<[5, 3, 2, 4, 9, 8, 7, 1]> : tensor<8xi64>
  %1 = nd.abs %0 : tensor<8xi64>
  return %1 : tensor<8xi64>
}
"""
    assert "splat(0 : i32) : tensor<1xi32>" in left(text, "nd.constant", "nd.abs")


def test_results_and_arguments_of_functions_go() -> None:
    small = left(PROGRAM, "nd.reduce_sum")
    assert re.search(r"func\.func @\w+\(%\w+: tensor<1x1xf32>\) \{", small), small


def test_lower_levels() -> None:
    text = """func.func @f(%a: memref<4xf32>, %b: memref<4xf32>) {
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %four step %one {
    %v = memref.load %a[%i] : memref<4xf32>
    %e = math.exp %v : f32
    memref.store %e, %b[%i] : memref<4xf32>
  }
  return
}
"""
    assert names(left(text, "math.exp")) == ["math.exp"]
    assert "scf.for" not in left(text, "memref.store")


def test_a_failure_that_needs_everything_is_kept() -> None:
    text = 'func.func @f(%x: tensor<f32>) {\n  %0 = "nd.exp"(%x) : (tensor<f32>) -> tensor<f32>\n  return\n}\n'
    assert left(text, "nd.exp", "%x: tensor<f32>") == print_module(parse_module(text))


def test_progress_and_limit() -> None:
    seen: list[Progress] = []
    reduce_module(PROGRAM, lambda text: "nd.cos" in text, report=seen.append, limit=5)
    assert max(p.tests for p in seen) <= 6
    assert all("nd.cos" in p.text for p in seen)
    assert [p.lines for p in seen] == sorted((p.lines for p in seen), reverse=True)


def test_text_is_reduced_without_being_parsed() -> None:
    small = reduce_lines(PROGRAM + "func.func @broken( {", lambda text: "@broken(" in text and "max" in text)
    assert sorted(small.split()) in (["@broken(max"], ["@broken(", "max"], ["max@broken("]) or len(small) <= 12


def test_an_input_that_does_not_fail() -> None:
    for reduce in (reduce_module, reduce_lines):
        with pytest.raises(GradirError) as caught:
            reduce(PROGRAM, lambda text: False)
        assert caught.value.code == "GR070" and "passes" in caught.value.found


# -- the command line


def file(tmp_path: Path, text: str = PROGRAM) -> str:
    path = tmp_path / "input.mlir"
    path.write_text(text)
    return str(path)


def test_while_the_command_fails(tmp_path: Path) -> None:
    """The default: an exit status other than 0 is the failure, the file stands at the end of the command."""
    out = tmp_path / "small.mlir"
    assert run([file(tmp_path), "--test", "! grep -q nd.cos", "-o", str(out)]) == 0
    assert names(out.read_text()) == ["nd.cos"]
    assert not (tmp_path / "small.mlir.part").exists()


def test_status_output_and_place_of_the_file(tmp_path: Path, capsys: Capture) -> None:
    assert run([file(tmp_path), "--test", "cat {} | grep nd.cos", "--expect-status=0"]) == 0
    assert names(capsys.readouterr().out) == ["nd.cos"]
    assert run([file(tmp_path), "--test", "cat {}; exit 3", "--expect-status=3", "--expect-output=nd.m[au][xl]", "--quiet"]) == 0
    assert names(capsys.readouterr().out) in (["nd.max"], ["nd.mul"])
    assert run([file(tmp_path), "--test", "grep -q nd.tanh {} && kill -SEGV $$", "--expect-status=139"]) == 0
    assert names(capsys.readouterr().out) == ["nd.tanh"]


def test_what_is_refused(tmp_path: Path, capsys: Capture) -> None:
    assert run([file(tmp_path), "--test", "true"]) == 1
    assert "GR070" in capsys.readouterr().err
    assert run([file(tmp_path, "func.func @f("), "--test", "false"]) == 1
    assert "--text reduces" in capsys.readouterr().err
    assert run([file(tmp_path, "func.func @f("), "--test", "false", "--text"]) == 0
    assert len(capsys.readouterr().out) == 1
    assert run([str(tmp_path / "none.mlir"), "--test", "false"]) == 2
    assert run([file(tmp_path), "--test", "false", "--expect-output", "("]) == 2
    with pytest.raises(SystemExit):
        run([file(tmp_path)])


def test_a_test_that_hangs_is_not_interesting(tmp_path: Path, capsys: Capture) -> None:
    assert run([file(tmp_path), "--test", "sleep 60; exit 1", "--timeout=0.2"]) == 1
    assert "GR070" in capsys.readouterr().err


def test_ctrl_c_keeps_the_best_result(tmp_path: Path) -> None:
    """Interrupted in the middle of a slow search: status 130, and what it had reached is written."""
    out = tmp_path / "small.mlir"
    command = [
        sys.executable,
        "-m",
        "gradir.tools.reduce.command",
        file(tmp_path),
        "--test",
        "sleep 0.05; ! grep -q nd.cos {}",
        "-o",
        str(out),
    ]
    listens = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # also where the tests run in the background
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=listens)
    deadline = time.monotonic() + 30
    while not (out.exists() and "@unused" not in out.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    text = out.read_text()
    assert "nd.cos" in text and "@unused" not in text
    parse_module(text)
    assert "interrupted" in err


def test_ctrl_c_when_the_test_has_just_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """There is nothing left to kill then: the search is interrupted, no more."""

    def ended(process: subprocess.Popen[bytes], *_: object, **__: object) -> None:
        process.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", ended)
    try:
        status = run([file(tmp_path), "--test", "true", "-o", str(tmp_path / "small.mlir")])
    except KeyboardInterrupt:
        status = 130
    assert status == 130 and "ProcessLookupError" not in capsys.readouterr().err


def test_progress_on_a_terminal(tmp_path: Path) -> None:
    """Somebody watches: how many lines are left, after how many tests, what is tried."""
    master, slave = os.openpty()
    command = [
        sys.executable,
        "-m",
        "gradir.tools.reduce.command",
        file(tmp_path),
        "--test",
        "sleep 0.02; ! grep -q nd.cos {}",
        "-o",
        str(tmp_path / "out"),
    ]
    process = subprocess.Popen(command, stderr=slave, stdout=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm", "COLUMNS": "120"})
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while data := os.read(master, 1 << 16):
            shown += data
    os.close(master)
    assert process.wait() == 0
    assert re.search(rb"\d+ lines after \d+ tests; \w+", shown), shown


def test_a_link_stays_a_link_and_a_pipe_a_pipe(tmp_path: Path) -> None:
    """A result replaces a file whole; it must not replace what is no file."""
    link, target = tmp_path / "link.mlir", tmp_path / "target.mlir"
    target.write_text("old")
    link.symlink_to(target)
    assert run([file(tmp_path), "--test", "! grep -q nd.cos", "-o", str(link)]) == 0
    assert link.is_symlink() and names(target.read_text()) == ["nd.cos"]

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True)
    _write(str(pipe), "text\n")
    assert process.communicate(timeout=30)[0] == "text\n"
    assert pipe.is_fifo() and not (tmp_path / "pipe.part").exists()
