"""lit's configuration: `lit tests/filecheck -j2` runs every `.mlir` file by its RUN lines.

The tools run in children of one preloaded process (`lit_server.py`): a test costs a fork, not 0.2 s of imports.
GRADIR_NO_SERVER=1 runs the installed commands instead. FileCheck of LLVM is used when found, else the Python `filecheck`;
GRADIR_FILECHECK=python or =llvm chooses.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import lit.formats

TESTS = Path(__file__).resolve().parent
TOOLS = ("gradir", "gradir-opt", "gradir-translate", "gradir-run", "gradir-reduce", "filecheck")
SHIM = """#!{python} -ISE
# A command of one test: hand arguments, environment and the standard streams to the server, wait for the exit code.
import os, sys
from _socket import SCM_RIGHTS, SOL_SOCKET, socket
s = socket(1, 1)
s.connect({path!r})
parts = ["{tool}", os.getcwd(), str(len(sys.argv) - 1), *sys.argv[1:], *(k + "=" + v for k, v in os.environ.items())]
data = "\\0".join(parts).encode("utf-8", "surrogateescape")
s.sendmsg([len(data).to_bytes(4, "little")], [(SOL_SOCKET, SCM_RIGHTS, b"".join(i.to_bytes(4, sys.byteorder) for i in (0, 1, 2)))])
s.sendall(data)
code = s.recv(4)
os._exit(int.from_bytes(code, "little", signed=True) & 255 if len(code) == 4 else 70)
"""

config.name = "gradir"  # noqa: F821 (lit defines config)
config = config  # noqa: F821
config.suffixes = [".mlir"]
config.excludes = ["Inputs"]
config.test_source_root = str(TESTS)
config.test_exec_root = os.environ.get("GRADIR_LIT_OUTPUT") or os.path.join(tempfile.gettempdir(), f"gradir-lit-{os.getuid()}")
config.test_format = lit.formats.ShTest(execute_external=False)

bin_dir = Path(sys.executable).parent
config.environment["PATH"] = os.pathsep.join((str(bin_dir), os.environ.get("PATH", "")))
for name in ("GRADIR_CACHE_DIR", "HOME", "COVERAGE_PROCESS_START", "COVERAGE_FILE", "PYTHONPATH"):
    if name in os.environ:
        config.environment[name] = os.environ[name]


def file_check():
    """The FileCheck of LLVM to use, or None for the Python one."""
    wanted = os.environ.get("GRADIR_FILECHECK", "")
    found = shutil.which("FileCheck-22") or shutil.which("FileCheck")
    if wanted == "llvm" and not found:
        raise SystemExit("GRADIR_FILECHECK=llvm, but neither FileCheck-22 nor FileCheck is on the PATH")
    return None if wanted == "python" else found


def start_server():
    """Start the server and make a folder of shims for it; the folder."""
    folder = Path(tempfile.mkdtemp(prefix="gradir-lit-"))
    socket_path = str(folder / "socket")
    command = [sys.executable, str(TESTS / "lit_server.py"), socket_path, str(folder)]
    theirs, _ = os.pipe()  # our end stays open as long as lit lives: the server ends when it closes
    server = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE)
    if server.stdout.readline() != b"ready\n":
        raise SystemExit("tests/lit_server.py did not start; GRADIR_NO_SERVER=1 runs the tests without it")
    python = os.path.realpath(sys.executable)
    for tool in TOOLS:
        shim = folder / tool
        shim.write_text(SHIM.format(python=python, path=socket_path, tool=tool))
        shim.chmod(0o755)
    return folder


llvm_file_check = file_check()
if llvm_file_check is not None:
    config.substitutions.append((r"\bfilecheck\b", f"{llvm_file_check} --allow-unused-prefixes"))
if shutil.which("mlir-opt-22"):
    config.available_features.add("mlir-opt")
    config.substitutions.append((r"\bmlir-opt\b", "mlir-opt-22"))
if not os.environ.get("GRADIR_NO_SERVER"):
    shims = start_server()
    config.environment["PATH"] = os.pathsep.join((str(shims), config.environment["PATH"]))
