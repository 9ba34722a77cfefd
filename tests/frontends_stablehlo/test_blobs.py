"""Large constants: right in every spelling, from text and from files, and in memory once."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gradir.errors import GradirError
from gradir.frontends.stablehlo import blobs, import_file, import_text
from gradir.ir.text import print_module
from gradir.reference import run
from gradir.tools.translate import run as translate

W = np.random.default_rng(0).normal(size=(48, 64)).astype(np.float32)
B = np.arange(4096, dtype=np.int64)


def hexadecimal(array: np.ndarray) -> str:
    return array.tobytes().hex().upper()


DENSE = f'dense<"0x{hexadecimal(W)}">'
TEXT = f"""func.func public @main() -> (tensor<48x64xf32>, tensor<4096xi64>) {{
  %0 = stablehlo.constant {DENSE} : tensor<48x64xf32>
  %1 = stablehlo.constant dense_resource<b> : tensor<4096xi64>
  return %0, %1 : tensor<48x64xf32>, tensor<4096xi64>
}}
{{-#
  dialect_resources: {{
    builtin: {{
      small: "0x04000000DEADBEEF",
      b: "0x08000000{hexadecimal(B)}"
    }}
  }}
#-}}
"""


def test_both_spellings_are_taken_out_and_decoded() -> None:
    taken = blobs.extract(TEXT)
    assert set(taken.blobs) == {"literal_0", "b"}
    assert len(taken.text) < 1000
    assert taken.text.count("\n") == TEXT.count("\n")  # lines of messages stay right
    first, second = run(import_text(TEXT), "main", [])
    np.testing.assert_array_equal(first, W)
    np.testing.assert_array_equal(second, B)


def test_a_file_gives_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(TEXT)
    assert print_module(import_file(path)) == print_module(import_text(TEXT))
    assert translate(["--from=stablehlo", "--to=gradir", str(path)]) == 0
    assert "nd.constant resource(c_" in capsys.readouterr().out
    assert translate(["--from=stablehlo", "--to=gradir", str(tmp_path / "none.mlir")]) == 2
    empty = tmp_path / "empty.mlir"
    empty.write_text("")
    assert import_file(empty).functions == ()


def test_literals_longer_than_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blobs, "_STEP", 64)
    path = tmp_path / "m.mlir"
    path.write_text(TEXT)
    first, second = run(import_file(path), "main", [])
    np.testing.assert_array_equal(first, W)
    np.testing.assert_array_equal(second, B)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (DENSE, DENSE[:-2] + 'G0">', "GR010"),  # no digit: left to the parser
        ("tensor<4096xi64>", "tensor<4095xi64>", "GR120"),
        ("tensor<48x64xf32>", "tensor<48x63xf32>", "GR120"),
    ],
)
def test_damaged_literals_are_refused(old: str, new: str, code: str) -> None:
    assert old in TEXT
    with pytest.raises(GradirError) as caught:
        import_text(TEXT.replace(old, new))
    assert caught.value.code == code


MEASURE = """
import resource, sys
from gradir.frontends.stablehlo import import_file, import_text
import_text("func.func public @main() -> tensor<f32> {\\n %0 = stablehlo.constant dense<1.0> : tensor<f32>\\n return %0 : tensor<f32>\\n}")
with open("/proc/self/statm") as file:
    before = int(file.read().split()[1]) * resource.getpagesize()
module = import_file(sys.argv[1])
with open("/proc/self/status") as file:  # ru_maxrss would count what the parent had when it forked
    peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024
print(peak - before)
"""


@pytest.mark.parametrize("spelling", ["dense", "resource"])
def test_constants_are_in_memory_once(spelling: str, tmp_path: Path) -> None:
    path, size, piece = tmp_path / "m.mlir", 160 << 20, np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8).tobytes().hex()
    kind = f"tensor<{size}xui8>"
    with path.open("w") as file:
        value = "dense_resource<w>" if spelling == "resource" else 'dense<"0x'
        file.write(f"func.func public @main() -> {kind} {{\n  %0 = stablehlo.constant {value}")
        file.writelines([piece] * 160 if spelling == "dense" else [])
        file.write(('">' if spelling == "dense" else "") + f" : {kind}\n  return %0 : {kind}\n}}\n")
        if spelling == "resource":
            file.write('{-#\n  dialect_resources: {\n    builtin: {\n      w: "0x01000000')
            file.writelines([piece] * 160)
            file.write('"\n    }\n  }\n#-}\n')
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    assert size < int(done.stdout) < size * 1.2
