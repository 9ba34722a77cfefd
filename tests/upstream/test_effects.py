"""What each kind of op does to memory, as `cse` and `dce` see it."""

from __future__ import annotations

import pytest
from xdsl.parser import Parser

from gradir.dialects.registry import make_context
from gradir.dialects.upstream.effects import Effects, effects, is_pure

VALUES = "%m: memref<4x8xf32>, %i: index, %a: vector<4xf32>, %b: vector<8xf32>, %s: f32, %x: tensor<4x8xf32>, %k: vector<8xi1>, %p: i1"
GENERIC = """linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}}
  ins({0}) outs({0}) {{ ^bb0(%e: f32, %f: f32):  {1} }} {2}"""
YIELD = "linalg.yield %e : f32"
LOAD = "%g = memref.load %m[%i, %i] : memref<4x8xf32> linalg.yield %g : f32"

CASES = [
    ("%0 = arith.addf %s, %s : f32", Effects.NOTHING),
    ("%0 = arith.extsi %p : i1 to i32", Effects.NOTHING),
    ("%0 = vector.shuffle %a, %a [0, 5] : vector<4xf32>, vector<4xf32>", Effects.NOTHING),
    ("%0 = vector.create_mask %i : vector<4xi1>", Effects.NOTHING),
    ("%0 = tensor.empty() : tensor<4xf32>", Effects.NOTHING),
    ("%0 = " + GENERIC.format("%x : tensor<4x8xf32>", YIELD, "-> tensor<4x8xf32>"), Effects.NOTHING),
    ("%0 = " + GENERIC.format("%x : tensor<4x8xf32>", LOAD, "-> tensor<4x8xf32>"), Effects.READ),
    (GENERIC.format("%m : memref<4x8xf32>", YIELD, ""), Effects.READ | Effects.WRITE),
    ("linalg.fill ins(%s : f32) outs(%m : memref<4x8xf32>)", Effects.WRITE),
    ("linalg.copy ins(%m : memref<4x8xf32>) outs(%m : memref<4x8xf32>)", Effects.READ | Effects.WRITE),
    ("%0 = linalg.fill ins(%s : f32) outs(%x : tensor<4x8xf32>) -> tensor<4x8xf32>", Effects.NOTHING),
    ("%0 = vector.load %m[%i, %i] : memref<4x8xf32>, vector<8xf32>", Effects.READ),
    ("vector.store %b, %m[%i, %i] : memref<4x8xf32>, vector<8xf32>", Effects.WRITE),
    ("%0 = vector.transfer_read %m[%i, %i], %s : memref<4x8xf32>, vector<8xf32>", Effects.READ),
    ("%0 = vector.transfer_read %x[%i, %i], %s : tensor<4x8xf32>, vector<8xf32>", Effects.NOTHING),
    ("vector.transfer_write %b, %m[%i, %i] : vector<8xf32>, memref<4x8xf32>", Effects.WRITE),
    ("vector.maskedstore %m[%i, %i], %k, %b : memref<4x8xf32>, vector<8xi1>, vector<8xf32>", Effects.WRITE),
    ("%0 = memref.load %m[%i, %i] : memref<4x8xf32>", Effects.READ),
    ("memref.copy %m, %m : memref<4x8xf32> to memref<4x8xf32>", Effects.READ | Effects.WRITE),
    ("%0 = memref.alloc() : memref<4xf32>", Effects.ALLOCATE),
    ("memref.dealloc %m : memref<4x8xf32>", Effects.FREE),
    ("scf.for %n = %i to %i step %i { memref.store %s, %m[%n, %n] : memref<4x8xf32> }", Effects.WRITE),
    ("scf.if %p { %0 = arith.addf %s, %s : f32 }", Effects.NOTHING),
    ('cf.assert %p, "message"', Effects.ORDER),
    ("func.call @g() : () -> ()", Effects.ANYTHING),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_effects_of_op(text: str, expected: Effects) -> None:
    module = Parser(make_context(), f"func.func private @g()\nfunc.func @f({VALUES}) {{\n  {text}\n  return\n}}").parse_module()
    op = next(op for op in module.walk() if op.name == "func.return").parent.first_op  # pyright: ignore[reportOptionalMemberAccess]
    assert op is not None
    assert effects(op) == expected
    assert is_pure(op) == (expected == Effects.NOTHING)


def test_terminators_are_never_pure() -> None:
    module = Parser(make_context(), "func.func @f() {\n  return\n}").parse_module()
    assert not any(is_pure(op) for op in module.walk() if op.name == "func.return")
