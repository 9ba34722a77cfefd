"""Whatever text the tools are given: a result or diagnostics, exit code 0, 1 or 2, never an exception."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gradir.tools import opt, process, run, translate

Capture = pytest.CaptureFixture[str]
ROAD = "differentiate,to-structured{target=cpu},to-buffers,to-loops"
COMMANDS: dict[str, tuple[Callable[[Sequence[str]], int], list[str]]] = {
    "print": (opt.run, []),
    "road": (opt.run, ["-p", ROAD]),
    "semantics": (opt.run, ["--check-semantics"]),
    "expected": (opt.run, ["--verify-diagnostics", "--split-input-file"]),
    "llvm": (translate.run, ["--to=llvm-ir"]),
    "ptx": (translate.run, ["--to=ptx"]),
    "cpu": (run.run, ["--no-cache", "--input=3xf32=1"]),
    "reference": (run.run, ["--target=reference", "--input=3xf32=1"]),
    "runtime": (run.run, ["--target=runtime"]),
}
T = "tensor<3xf32>"


def body(lines: str, arguments: str = f"%x: {T}", results: str = "") -> bytes:
    return f"func.func @f({arguments}){results} {{ {lines} }}".encode()


BAD: dict[str, bytes] = {
    "random bytes": bytes(range(128, 256)) * 4,
    "zeros": b"\0" * 64,
    "a wide encoding": "func.func @f() { return }".encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + body("return"),
    "braces": b"{" * 2000,
    "an unterminated string": body("return").replace(b"{", b'attributes {a = "abc} {'),
    "nested modules": b"module {" * 3000 + b"}" * 3000,
    "nested attributes": b"module attributes {a = " + b"[" * 5000 + b"]" * 5000 + b"} {}",
    "nested types": b"func.func @f(%x: " + b"tuple<" * 3000 + b"f32" + b">" * 3000 + b") { return }",
    "nested regions": body("scf.if %c {" * 600 + "}" * 600 + "return", "%c: i1"),
    "an unknown op": body(f'%0 = "nd.nothing"(%x) : ({T}) -> {T} return'),
    "an unknown dialect": body("nothing.at_all return"),
    "an operand too few": body(f'%0 = "nd.add"(%x) : ({T}) -> {T} return'),
    "an operand too many": body(f'%0 = "nd.relu"(%x, %x) : ({T}, {T}) -> {T} return'),
    "a result too few": body(f'"nd.relu"(%x) : ({T}) -> () return'),
    "an attribute of another type": body(f'%0 = "nd.reduce_sum"(%x) <{{dims = "a"}}> : ({T}) -> tensor<f32> return'),
    "a missing attribute": body(f'%0 = "nd.reduce_sum"(%x) : ({T}) -> tensor<f32> return'),
    "a scalar operand": body('%0 = "nd.relu"(%x) : (i32) -> i32 return', "%x: i32"),
    "no terminator": body(f"%0 = nd.relu %x : {T}"),
    "a use before the definition": body(f"%0 = nd.relu %1 : {T} %1 = nd.relu %x : {T} return"),
    "a definition in an inner region": body(f"%0 = nd.relu %1 : {T} scf.if %c {{ %1 = nd.relu %x : {T} }} return", f"%c: i1, %x: {T}"),
    "a module of two blocks": b'"builtin.module"() ({ "func.func"() <{sym_name = "f", function_type = () -> ()}> ({ "func.return"() : () -> () }) : () -> () ^bb1: }) : () -> ()',
    "duplicate symbols": body("return") * 2,
    "a result that is not returned": body("return", results=f" -> {T}"),
    "an integer of odd width": body("%0 = nd.add %x, %x : tensor<3xi3> return %0 : tensor<3xi3>", "%x: tensor<3xi3>", " -> tensor<3xi3>"),
    "an unranked tensor": body("%0 = nd.relu %x : tensor<*xf32> return", "%x: tensor<*xf32>"),
    "results without else": body('%0 = "scf.if"(%c) ({ "scf.yield"() : () -> () }, {}) : (i1) -> i32 return', "%c: i1"),
    "a loop without a body": body('"scf.for"(%n, %n, %n) ({^bb0:}) : (index, index, index) -> () return', "%n: index"),
    "a region without a block": body(
        f'%0 = "linalg.generic"(%x, %x) <{{operandSegmentSizes = array<i32: 1, 1>, indexing_maps = [], iterator_types = []}}> ({{}}) : ({T}, {T}) -> {T} return'
    ),
    "no callee": body(f"%0 = func.call @g(%x) : ({T}) -> {T} return"),
    "a function without a name": b'"func.func"() ({}) : () -> ()',
    "a kernel without a type": b'"func.func"() <{sym_name = "k", sym_visibility = "private"}> ({^bb0(%x: tensor<f32>): "func.return"(%x) : (tensor<f32>) -> ()})'
    b" {gradir.kernel = #kernel.elementwise<>} : () -> ()",
    "a call of a function without a type": b'"func.func"() <{sym_name = "g"}> ({}) : () -> () ' + body("func.call @g() : () -> () return"),
    "an undefined location": body("return loc(#loc7)"),
    "a literal of another size": body("%0 = nd.constant dense<[1.0]> : tensor<2xf32> return"),
    "a derivative of nothing": body(f"%0, %1 = ad.value_and_grad @g(%x) wrt [0] : ({T}) -> (tensor<f32>, {T}) return"),
}  # fmt: skip
"""Rejected when it is read: every command refuses these."""

VALID_BUT: dict[str, bytes] = {
    "empty": b"",
    "line ends of Windows": body(f"\r\n  %0 = nd.relu %x : {T}\r\n  return %0 : {T}\r\n", results=f" -> {T}"),
    "letters of any script": body("return").replace(b"@f", '@"日本"'.encode()) + "// ünï".encode(),
    "recursion": body(f"%0 = func.call @f(%x) : ({T}) -> {T} return %0 : {T}", results=f" -> {T}"),
    "a declaration": f"func.func @f({T}) -> {T}".encode(),
    "a call of a declaration": f"func.func private @g({T}) -> {T} ".encode() + body(f"%0 = func.call @g(%x) : ({T}) -> {T} return %0 : {T}", results=f" -> {T}"),
    "blocks": body(f"cf.br ^bb1 ^bb1: return %x : {T}", results=f" -> {T}"),
    "tensors and memrefs": body(f"%c = arith.constant 0 : index %v = memref.load %m[%c] : memref<3xf32> memref.store %v, %m[%c] : memref<3xf32> return %x : {T}", f"%x: {T}, %m: memref<3xf32>", f" -> {T}"),
    "complex elements": body("return %x : tensor<3xcomplex<f32>>", "%x: tensor<3xcomplex<f32>>", " -> tensor<3xcomplex<f32>>"),
    "long floats": body("return %x : tensor<3xf80>", "%x: tensor<3xf80>", " -> tensor<3xf80>"),
    "a tensor beyond all memory": body("return", "%x: tensor<4000000000x4000000000xf32>"),
    "a scalar result": body("return %n : index", "%n: index", " -> index"),
    "marks that do not add up": body("return", "%m: memref<3xf32>").replace(b") {", b") attributes {gradir.inputs = 7 : i64, gradir.results = 9 : i64, gradir.arena = -3 : i64} {"),
    "a function in a function": body("func.func @g() { return } return"),
    "two modules": b"module {} module {}",
    "an op at no level": body('"gpu.barrier"() : () -> () return'),
}  # fmt: skip
"""Read without complaint; what a command cannot do with it is a diagnostic."""


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], str]:
    monkeypatch.setenv("GRADIR_CACHE_DIR", "")
    path = tmp_path / "given.mlir"

    def write(data: bytes) -> str:
        path.write_bytes(data)
        return str(path)

    return write


@pytest.mark.parametrize("name", BAD)
def test_bad_text_is_diagnosed_by_every_tool(name: str, given: Callable[[bytes], str], capsys: Capture) -> None:
    path = given(BAD[name])
    for command, (tool, arguments) in COMMANDS.items():
        code = tool([path, *arguments])
        out, err = capsys.readouterr()
        assert code in (1, 2) and err and not out, (command, code, err)
        assert "Traceback" not in err and "crashed" not in err, (command, err)


@pytest.mark.parametrize("name", VALID_BUT)
def test_odd_programs_run_or_are_diagnosed(name: str, given: Callable[[bytes], str], capsys: Capture) -> None:
    path = given(VALID_BUT[name])
    for command, (tool, arguments) in COMMANDS.items():
        code = tool([path, *arguments])
        _, err = capsys.readouterr()
        assert code in (0, 1, 2) and bool(err) == (code != 0), (command, code, err)
        assert "Traceback" not in err and "crashed" not in err, (command, err)
        assert code == 0 or command != "print"


@pytest.mark.parametrize(
    ("name", "command", "message"),
    [
        ("a declaration", "road", "has no body [graph GR063]"),
        ("a call of a declaration", "cpu", "[graph GR063] func.func: has no body"),
        ("blocks", "road", "has several blocks [graph GR063]"),
        ("blocks", "cpu", "[graph GR063] func.func: has several blocks"),
        ("blocks", "reference", "[graph GR063] func.func: has several blocks"),
        ("recursion", "semantics", "calls or regions nest too deeply [operator OP112]"),
        ("recursion", "cpu", "[graph GR040] func.call: @f calls itself"),
        ("long floats", "reference", "[operator OP100] the reference evaluator has no values of this type"),
        ("a tensor beyond all memory", "semantics", "the inputs are too large to be evaluated [operator OP114]"),
        ("a scalar result", "cpu", "[graph GR051] func.func: a public function returns a scalar"),
        ("marks that do not add up", "cpu", "[graph GR050] func.func: the marks of a function on memrefs do not add up to its arguments"),
    ],
)
def test_the_diagnostic_says_what_is_wrong(name: str, command: str, message: str, given: Callable[[bytes], str], capsys: Capture) -> None:
    tool, arguments = COMMANDS[command]
    assert tool([given(VALID_BUT[name]), *arguments]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nested regions", "given.mlir:1:1367: error: regions, types or attributes nest too deeply"),
        ("results without else", "'scf.if' op has 1 results and needs an else region that yields them"),
        ("an integer of odd width", "nd.add: lhs must have a float, complex or integer type, found i3"),
    ],
)
def test_what_is_wrong_with_bad_text(name: str, message: str, given: Callable[[bytes], str], capsys: Capture) -> None:
    assert opt.run([given(BAD[name])]) == 1
    err = capsys.readouterr().err
    assert message.partition("error: ")[2] in err if "error: " in message else message in err


SCF = {
    "scf.if yields another type": '%0 = "scf.if"(%c) ({ "scf.yield"(%c) : (i1) -> () }, { "scf.yield"(%n) : (index) -> () }) : (i1) -> index',
    "scf.if yields too much": '"scf.if"(%c) ({ "scf.yield"(%c) : (i1) -> () }, {}) : (i1) -> ()',
    "scf.while carries another type": '%0 = "scf.while"(%n) ({^bb0(%a: index): "scf.condition"(%c, %c) : (i1, i1) -> ()}, '
    '{^bb0(%a: index): "scf.yield"(%a) : (index) -> ()}) : (index) -> index',
    "scf.while yields too little": '%0 = "scf.while"(%n) ({^bb0(%a: index): "scf.condition"(%c, %a) : (i1, index) -> ()}, '
    '{^bb0(%a: index): "scf.yield"() : () -> ()}) : (index) -> index',
    "scf.while ends in yield": '"scf.while"() ({ "scf.yield"() : () -> () }, { "scf.yield"() : () -> () }) : () -> ()',
    "scf.for yields too little": '%0 = "scf.for"(%n, %n, %n, %c) ({^bb0(%i: index, %a: i1): "scf.yield"() : () -> ()}) : (index, index, index, i1) -> i1',
    "scf.for does not advance": "%s = arith.constant 0 : index scf.for %i = %n to %n step %s { }",
    "scf.index_switch yields another type": '%0 = "scf.index_switch"(%n) <{cases = array<i64: 1>}> ({ "scf.yield"(%c) : (i1) -> () }, '
    '{ "scf.yield"(%n) : (index) -> () }) : (index) -> i1',
}


@pytest.mark.parametrize("name", SCF)
def test_regions_must_give_what_their_op_promises(name: str, given: Callable[[bytes], str], capsys: Capture) -> None:
    op = name.split()[0]
    assert opt.run([given(body(f"{SCF[name]} return", "%c: i1, %n: index"))]) == 1
    err = capsys.readouterr().err
    assert f"'{op}' op " in err and "crashed" not in err, err


def test_a_crash_of_a_tool_is_an_error_with_a_note(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/gradir-test"])
    try:
        raise KeyError("lost")
    except KeyError as error:
        assert process.report_crash(error) == process.DIAGNOSED
    err = capsys.readouterr().err
    assert err.startswith("gradir-test: error: internal error: KeyError: 'lost' (test_bad_input.py:")
    assert "gradir-test: note: Traceback" in err


@pytest.mark.parametrize(("raised", "code"), [("KeyboardInterrupt()", 130), ("ValueError('x')", 1), ("SystemExit(2)", 2)])
def test_the_process_ends_with_a_code_whatever_happens(raised: str, code: int) -> None:
    program = f"from gradir.tools.process import exit_with\ndef run(arguments):\n    raise {raised}\nexit_with(run)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stderr.startswith("Traceback") is False
