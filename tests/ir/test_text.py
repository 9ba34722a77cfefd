"""parse_module and print_module: errors that reach users of the API, robustness of the parser, linear verification."""

from __future__ import annotations

import random

import pytest
from xdsl.dialects.builtin import UNKNOWN_LOC, FileLineColLoc, FusedLoc, IntAttr, NoneAttr, StringAttr

from gradir.errors import GradirError
from gradir.ir.diagnostics import Engine
from gradir.ir.locations import Position, fuse, position
from gradir.ir.rebuild import Rebuilder, rebuild_region
from gradir.ir.text import parse_module, print_module
from gradir.ir.verifier import INVARIANTS, register_invariant, verify

LOOP = """#id = affine_map<(d0) -> (d0)>
func.func @f(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<4xf32>) {
    %e = tensor.empty() : tensor<4xf32>
    %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%v: f32, %o: f32):
      %w = arith.mulf %v, %v : f32
      linalg.yield %w : f32
    } -> tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
"""


def test_syntax_error_is_a_gradir_error_with_place_and_caret() -> None:
    with pytest.raises(GradirError) as caught:
        parse_module("func.func @f() {\n  %0 = arith.addi %x %x : i32\n  return\n}\n", "m.mlir")
    error = caught.value
    assert (error.part, error.code, error.location) == ("graph", "GR010", "m.mlir:2:22")
    assert error.found.splitlines()[1] == " " * (len("  found: ") + 21) + "^"


def test_invalid_ir_is_a_gradir_error_naming_op_and_function() -> None:
    with pytest.raises(GradirError) as caught:
        parse_module("func.func @f() -> i32 {\n  %a = arith.addi %b, %b : i32\n  %b = arith.constant 1 : i32\n  return %a : i32\n}", "m")
    error = caught.value
    assert (error.code, error.op, error.function, error.location) == ("GR011", "arith.addi", "@f", "m:2:8")
    assert "1 more: m:2:8: 'arith.addi' op operand #1" in error.hint


def test_check_can_be_left_out() -> None:
    module = parse_module("func.func @f() { call @g() : () -> () return }", check=False)
    assert not verify(module, Engine())


def test_printing_twice_is_a_fixed_point() -> None:
    text = print_module(parse_module(LOOP))
    assert print_module(parse_module(text)) == text
    located = print_module(parse_module(text, "m.mlir"), debuginfo=True)
    assert print_module(parse_module(located), debuginfo=True) == located
    generic = print_module(parse_module(LOOP), generic=True)
    assert print_module(parse_module(generic)) == text


@pytest.mark.parametrize("seed", range(120))
def test_mangled_text_never_crashes(seed: int) -> None:
    """Deleting, doubling or swapping words gives a module or a GradirError, nothing else."""
    rng = random.Random(seed)
    words = LOOP.replace("\n", " \n ").split(" ")
    for _ in range(rng.randrange(1, 3)):
        i, j = rng.randrange(len(words)), rng.randrange(len(words))
        match rng.randrange(4):
            case 0:
                del words[i]
            case 1:
                words.insert(i, words[i])
            case 2:
                words[i], words[j % len(words)] = words[j % len(words)], words[i]
            case _:
                words[i] = rng.choice(["}", "{", ")", "%q", ":", "f32", "tensor<", "-1", "@g", "#x", '"', "loc(", "->"])
    try:
        parse_module(" ".join(words))
    except GradirError as error:
        assert error.code in ("GR010", "GR011") and error.location


def place(line: int) -> FileLineColLoc:
    return FileLineColLoc(StringAttr("m"), IntAttr(line), IntAttr(1))


def test_fuse_is_flat_distinct_known_and_bounded() -> None:
    a, b = place(1), place(2)
    assert fuse() == UNKNOWN_LOC and fuse(UNKNOWN_LOC, a) is a and fuse(a, a) is a
    both = fuse(a, b)
    assert both == FusedLoc((a, b), NoneAttr()) and fuse(both, b, UNKNOWN_LOC) == both
    assert position(both) == Position("m", 1, 1)
    many = fuse(*map(place, range(20)))
    assert isinstance(many, FusedLoc) and len(list(many.locations)) == 8  # pyright: ignore


def test_rebuild_without_rules_is_the_identity() -> None:
    module = parse_module(LOOP, "m.mlir")
    before = print_module(module, debuginfo=True)
    rebuild_region(module.body, {})
    assert print_module(module, debuginfo=True) == before and verify(module, Engine())


def test_rebuild_rule_fuses_locations() -> None:
    from gradir.dialects.upstream import arith

    body = "  %0 = arith.addi %x, %x : i32\n  %1 = arith.muli %0, %0 : i32\n  return %1 : i32\n"
    module = parse_module("func.func @f(%x: i32) -> i32 {\n" + body + "}", "m")

    def square_of_double(r: Rebuilder, op: arith.MuliOp) -> None:
        r.stands_for(op, op.lhs.owner)  # pyright: ignore
        r.map(op, r.builder.op(arith.ShLIOp, r.operands(op), [op.result.type], {"overflowFlags": op.properties["overflowFlags"]}).results)

    rebuild_region(module.body, {arith.MuliOp: square_of_double})
    assert 'arith.shli %0, %0 : i32 loc(fused["m":3:8, "m":2:8])' in print_module(module, debuginfo=True)


def test_invariants_run_on_functions_that_carry_the_attribute() -> None:
    @register_invariant("gradir.test_only")
    def no_arguments(function, report) -> None:
        if function.body.block.args:
            report(function, "must have no arguments")

    try:
        parse_module("func.func @f(%x: i32) { return }")
        parse_module("func.func @f() attributes {gradir.test_only} { return }")
        with pytest.raises(GradirError, match=r"'func\.func' op must have no arguments"):
            parse_module("func.func @f(%x: i32) attributes {gradir.test_only} { return }")
    finally:
        del INVARIANTS["gradir.test_only"]


def test_the_number_of_errors_is_limited() -> None:
    bad = "\n".join(f"  %a{i} = arith.addi %z, %z : i32" for i in range(50))
    module = parse_module(f"func.func @f() {{\n{bad}\n  %z = arith.constant 1 : i32\n  return\n}}", check=False)
    engine = Engine()
    assert not verify(module, engine, limit=5) and len(engine.errors) == 5


def test_a_crashing_verifier_names_its_op(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradir.dialects.upstream import arith

    def crash(_self: object) -> None:
        raise KeyError("boom")

    monkeypatch.setattr(arith.AddiOp, "verify_", crash)
    with pytest.raises(GradirError, match=r"'arith.addi' op crashed its own verifier: KeyError: 'boom'"):
        parse_module("func.func @f(%x: i32) { %0 = arith.addi %x, %x : i32 return }")
