"""Every rule of a verifier has an invalid program, and every message shows what was found.

The rules are read from the source: calls that refuse (`self.fail(...)`, `raise VerifyException(...)`, `self.error(op, ...)`, `report(op, ...)`).
The messages are those that the lit files with `--verify-diagnostics` really cause.
"""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.cf import BranchOp

from gradir.dialects.registry import make_context
from gradir.ir.diagnostics import Engine
from gradir.ir.text import parse_module
from gradir.ir.verifier import verify
from gradir.tools.opt import _chunks
from gradir.tools.session import Input, Session, Settings
from gradir.tools.timing import Timer

ROOT = Path(__file__).parent.parent
LIT = ROOT / "tests" / "filecheck"

FOLDERS = ("gradir/dialects/nd", "gradir/dialects/upstream", "gradir/dialects/target")
FILES = (
    "gradir/dialects/ad.py",
    "gradir/dialects/kernel.py",
    "gradir/dialects/kernel_invariants.py",
    "gradir/ir/regions.py",
    "gradir/ir/verifier.py",
)
REFUSE = {"fail": 0, "VerifyException": 0, "error": 1, "report": 1}
"""Name of a function that refuses -> position of its message."""

UNREACHABLE: dict[str, str] = {
    "{}: body must end in scf.reduce, found {}": "xDSL's check of terminators comes first: tests/filecheck/invalid/scf_parallel_terminator.mlir",
    "{} must end in scf.yield, found {}": "as above: tests/filecheck/invalid/scf_region_terminator.mlir",
    "{} must be one block, found {}": "xDSL's check of regions comes first: tests/filecheck/invalid/scf_region_blocks.mlir",
    "branches to a block of another region": "a text names blocks of its own region: see the test below",
    "operand #{} is defined by an op or block that is not in the module": "a text holds all its ops: see the test below",
    "crashed its own verifier: {}: {}": "a bug of an op: see tests/fuzz/test_random_ir.py",
}
"""Rules that no text can break -> why."""

WITHOUT_VALUES: frozenset[str] = frozenset(
    {
        "is a kernel and must be private",
        "is a kernel and must have one block",
        "logits have 0 classes: no label can name one",
        "expected transpose or adjoint, found both",
        "expected at least one input, found 0",
        "has an empty block: it needs a terminator",
        "ends its block but is not a terminator",
        "has successors and must end its block",
        "branches to a block of another region",
        "holds a use of a value that is defined in no region around it",
    }
)
"""Messages that say all without a value."""


@dataclass(frozen=True)
class Rule:
    """One message of a verifier: `pattern` matches what it can look like, `holes` is how many values it shows."""

    place: str
    text: str
    pattern: str
    holes: int


def rules() -> list[Rule]:
    """All of them, in the order of the source."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.py"))] + [ROOT / name for name in FILES]
    return [rule for path in paths for rule in _rules_of(path)]


def _rules_of(path: Path) -> Iterator[Rule]:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in REFUSE and len(node.args) > REFUSE[name]:
            parts = _parts(node.args[REFUSE[name]])
            if parts is not None and any(isinstance(part, str) and len(part) > 3 for part in parts):
                text = "".join("{}" if part is None else part for part in parts)
                pattern = "".join(".*" if part is None else re.escape(part) for part in parts)
                yield Rule(f"{path.relative_to(ROOT)}:{node.lineno}", text, pattern, parts.count(None))


def _parts(node: ast.expr) -> list[str | None] | None:
    """Text and holes (None) of a message; None for an expression that is no literal."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return [part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else None for part in node.values]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _parts(node.left), _parts(node.right)
        return (left or [None]) + (right or [None])
    return None


@cache
def messages() -> tuple[str, ...]:
    """What the lit files cause: parse errors, verifier errors, notes left out."""
    found: list[str] = []
    for path in sorted(LIT.rglob("*.mlir")):
        text = path.read_text()
        run = re.search(r"RUN: *gradir-opt %s(.*--verify-diagnostics.*)", text)
        if run is None or " -p" in run[1]:
            continue
        for chunk, line in _chunks(text, "--split-input-file" in run[1]):
            session = Session(make_context(), Input(path.name, chunk, line), Settings(), Timer(0.0), io.StringIO())
            session.run(())
            found += [diagnostic.message for diagnostic in session.engine.errors]
    return tuple(found)


def test_every_rule_has_an_invalid_program() -> None:
    seen = "\n".join(messages())
    missing = [f"{rule.place}: {rule.text}" for rule in rules() if rule.text not in UNREACHABLE and not re.search(rule.pattern, seen)]
    assert not missing, f"{len(missing)} rules without an invalid program in tests/filecheck:\n" + "\n".join(missing)


def test_the_search_can_fail() -> None:
    rule = Rule("here", "{}: no such {}", ".*: no such .*", 2)
    assert re.search(rule.pattern, "nd.add: no such thing") and not re.search(rule.pattern, "nd.add: another thing")
    assert len(rules()) > 150 and len(messages()) > 300


def test_reasons_and_exceptions_are_not_stale() -> None:
    texts = {rule.text for rule in rules()}
    assert set(UNREACHABLE) <= texts and all(UNREACHABLE.values()), set(UNREACHABLE) - texts
    assert texts >= WITHOUT_VALUES, WITHOUT_VALUES - texts


def test_every_message_shows_what_was_found() -> None:
    """A value beside the name of the op: `{}: ... {}`."""
    poor = [f"{rule.place}: {rule.text}" for rule in rules() if not _shows_a_value(rule) and rule.text not in WITHOUT_VALUES]
    assert not poor, "messages without a value:\n" + "\n".join(poor)


def _shows_a_value(rule: Rule) -> bool:
    return rule.holes > rule.text.startswith("{}: ") or rule.text.endswith(("found none", 'found ""', "found rank 0"))


def test_there_are_sixty_invalid_files() -> None:
    assert len(list((LIT / "invalid").glob("*.mlir"))) >= 60


def verify_messages(module: ModuleOp) -> list[str]:
    engine = Engine()
    verify(module, engine)
    return [diagnostic.message for diagnostic in engine.errors]


def test_what_only_ir_in_memory_can_get_wrong() -> None:
    module = parse_module("func.func @f(%x: i32) { %0 = arith.addi %x, %x : i32 return }\nfunc.func @g(%x: i32) { return }")
    first, second = (op.regions[0].block for op in module.body.block.ops)
    assert first.first_op is not None and second.first_op is not None
    elsewhere = ConstantOp.from_int_and_width(1, 32)
    first.first_op.operands = [elsewhere.results[0], first.args[0]]
    assert "'arith.addi' op operand #0 is defined by an op or block that is not in the module" in verify_messages(module)

    module = parse_module("func.func @f() { return }\nfunc.func @g() { return }")
    first, second = (op.regions[0].block for op in module.body.block.ops)
    assert first.last_op is not None
    first.insert_op_before(BranchOp(second), first.last_op)
    first.last_op.detach()
    assert "'cf.br' op branches to a block of another region" in verify_messages(module)
