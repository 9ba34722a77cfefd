"""gradir-opt: exit codes, what goes where, flags that lit does not cover."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradir.tools.opt import run

GOOD = "func.func @f(%x: i32) -> i32 {\n  %0 = arith.addi %x, %x : i32\n  return %0 : i32\n}\n"
BAD = GOOD.replace("%x, %x", "%x, %y")
PLUGIN = str(Path(__file__).parent.parent / "filecheck" / "tools" / "Inputs" / "plugin.py")

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "good.mlir"
    path.write_text(GOOD)
    return str(path)


def test_prints_the_module_and_exits_0(good: str, capsys: Capture) -> None:
    assert run([good]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("builtin.module {\n  func.func @f(%x: i32) -> i32 {") and err == ""


def test_output_file(good: str, tmp_path: Path, capsys: Capture) -> None:
    assert run([good, "-o", str(tmp_path / "out.mlir")]) == 0
    assert capsys.readouterr().out == ""
    assert "arith.addi" in (tmp_path / "out.mlir").read_text()


def test_diagnostics_exit_1_and_print_nothing(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "bad.mlir"
    path.write_text(BAD)
    assert run([str(path)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{path}:2:23: error: use of undefined value %y [graph GR010]\n    %0 = arith.addi %x, %y : i32\n" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "no-such-pass"], "unknown pass 'no-such-pass'"),
        (["-p", "cse,"], "expected the name of a pass"),
        (["-p", "cse{max=3}"], "pass 'cse' has no option 'max'"),
        (["-p", "func.func(nd-expand{keep=1 kept=2})"], "did you mean 'keep'?"),
        (["--print-ir-after=nothing"], "no pass or pipeline has this name"),
        (["--check-semantics=x"], "expected SEED,N"),
        (["--load", "/no/such/plugin.py"], "plugin /no/such/plugin.py does not load"),
        (["--run-reproducer"], "no '// configuration:' on the first line"),
    ],
)
def test_a_wrong_command_line_exits_2(good: str, capsys: Capture, arguments: list[str], message: str) -> None:
    assert run([good, *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err and "Traceback" not in err


def test_missing_file_exits_2(capsys: Capture) -> None:
    assert run(["/no/such/file.mlir"]) == 2
    assert "No such file" in capsys.readouterr().err


def test_unknown_flag_exits_2(good: str) -> None:
    with pytest.raises(SystemExit) as end:
        run([good, "--no-such-flag"])
    assert end.value.code == 2


def test_file_that_is_not_text_exits_2(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "bytes.mlir"
    path.write_bytes(b"\xff\xfe\x00")
    assert run([str(path)]) == 2
    assert "can't decode" in capsys.readouterr().err


def test_split_input_keeps_good_chunks_and_file_lines(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "split.mlir"
    path.write_text(GOOD + "// -----\n" + BAD + "// -----\n" + GOOD.replace("@f", "@last"))
    assert run([str(path), "--split-input-file"]) == 1
    out, err = capsys.readouterr()
    assert out.count("// -----") == 1 and "@f" in out and "@last" in out
    assert ":7:23: error: use of undefined value %y" in err


def test_unregistered_dialect(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "foreign.mlir"
    path.write_text('%0 = "my.op"() {key = #my.attr<1>} : () -> !my.type\n')
    assert run([str(path)]) == 1
    assert "no dialect 'my' is registered" in capsys.readouterr().err
    assert run([str(path), "--allow-unregistered-dialect"]) == 0
    assert '"my.op"() {key = #my.attr<1>} : () -> !my.type' in capsys.readouterr().out


def test_verification_after_each_pass_names_the_pass(good: str, capsys: Capture) -> None:
    assert run([good, "--load", PLUGIN, "-p", "test-break"]) == 0  # one op: reversing changes nothing
    assert run(["--load", PLUGIN, "-p", "cse,test-break", str(_two_ops(good))]) == 1
    err = capsys.readouterr().err
    assert "does not dominate this use" in err and "this IR was produced by the pass 'test-break'" in err
    assert run(["--load", PLUGIN, "-p", "test-break", "--no-verify-each", str(_two_ops(good))]) == 0


def _two_ops(good: str) -> Path:
    path = Path(good).with_name("two.mlir")
    path.write_text(GOOD.replace("  return", "  %1 = arith.muli %0, %0 : i32\n  return").replace("return %0", "return %1"))
    return path


def test_error_raised_by_a_pass(good: str, capsys: Capture) -> None:
    assert run([good, "--load", PLUGIN, "-p", "test-refuse"]) == 1
    err = capsys.readouterr().err
    assert f"{good}:1:1: error: func.func: refused [operator GR011]" in err
    for line in ("note: in function: @f", "note: expected: this", "note: found: that", "note: next step: do otherwise"):
        assert line in err


def test_timing_is_a_tree_on_stderr(good: str, capsys: Capture) -> None:
    assert run([good, "-p", "func.func(cse),dce", "--timing"]) == 0
    out, err = capsys.readouterr()
    assert "Execution time" not in out
    rows = [line[21:] for line in err.splitlines() if "%)" in line]
    assert "'func.func' Pipeline" in rows and "  cse" in rows and "    (V) verify" in rows and "dce" in rows and rows[-1] == "Total"


def test_crash_reproducer_replays_the_crash(good: str, tmp_path: Path, capsys: Capture) -> None:
    text = GOOD + GOOD.replace("@f", "@g").replace("%0 = ", "%1 = arith.addi %x, %x : i32\n  %0 = ")
    Path(good).write_text(text)
    reproducer = tmp_path / "crash.mlir"
    pipeline = "cse,func.func(dce,test-crash{victim=g})"
    assert run([good, "--load", PLUGIN, "-p", pipeline, f"--crash-reproducer={reproducer}"]) == 1
    err = capsys.readouterr().err
    assert "pass 'test-crash' crashed: KeyError: 'boom' (plugin.py:" in err and "reproducer written" in err
    written = reproducer.read_text().splitlines()
    assert written[0].startswith("// configuration: -p 'func.func(dce,test-crash{victim=g})' --load ")
    assert written[1] == "// ran before: cse"
    assert sum("arith.addi" in line for line in written) == 2  # cse had run, and every op still has its location
    assert f'loc("{good}":' in reproducer.read_text()
    assert run(["--run-reproducer", str(reproducer)]) == 1
    assert "KeyError: 'boom'" in capsys.readouterr().err


def test_a_reproducer_brings_its_plugins_into_a_new_process(tmp_path: Path) -> None:
    reproducer = tmp_path / "crash.mlir"
    reproducer.write_text(f"// configuration: -p test-crash --load {PLUGIN}\n{GOOD}")
    command = [sys.executable, "-m", "gradir.tools.opt", "--run-reproducer", str(reproducer)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "KeyError: 'boom'" in done.stderr


def test_no_reproducer_without_a_crash(good: str, tmp_path: Path) -> None:
    assert run([good, "-p", "cse", f"--crash-reproducer={tmp_path / 'no.mlir'}"]) == 0
    assert not (tmp_path / "no.mlir").exists()


def test_lists(capsys: Capture) -> None:
    assert run(["--list-passes"]) == 0
    out = capsys.readouterr().out
    words = " ".join(out.split())
    assert " cse merge ops" in words and "to-structured{target=...} set-target," in words
    assert run(["--list-dialects"]) == 0
    assert {"nd", "linalg", "vector"} <= set(capsys.readouterr().out.split())


def test_process_start_stays_light() -> None:
    """What a listing imports: neither xDSL nor numpy. Time is measured in bench/."""
    code = "import sys; from gradir.tools.opt import run; run(['--list-passes']); print([m for m in ('xdsl', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_reading_text_does_not_import_numpy(good: str) -> None:
    code = f"import sys; from gradir.tools.opt import run; run([{good!r}, '-p', 'cse']); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "False", done.stderr


def test_console_script_reads_stdin_and_survives_a_closed_pipe() -> None:
    tool = Path(sys.executable).with_name("gradir-opt")
    done = subprocess.run([tool, "-"], input=GOOD, capture_output=True, text=True)
    assert done.returncode == 0 and "arith.addi" in done.stdout
    read, write = os.pipe()
    os.close(read)
    many = "\n".join(GOOD.replace("@f", f"@f{i}") for i in range(2000))
    closed = subprocess.run([tool, "-"], input=many.encode(), stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert closed.returncode == 1 and b"Traceback" not in closed.stderr
