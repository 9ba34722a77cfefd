"""canonicalize, cse, dce and inline on random programs: the reference evaluator gives the same numbers before and after.

Programs mix integer arithmetic, branches, loops with carried values that may be dead or constant, calls and stores; every
constant that makes a fold fire (0, 1, -1, powers of two) is frequent.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from gradir.ir.diagnostics import Engine
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, print_module
from gradir.ir.verifier import verify
from gradir.lowering.canonicalize import canonicalize
from gradir.lowering.cse import merge_equal_ops
from gradir.lowering.dce import remove_dead_ops
from gradir.lowering.inline import Inline
from gradir.lowering.purity import Purity
from gradir.reference import run

BINARY = ("addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui")
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


class Writer:
    """Writes one random program; `scope` holds the i32 values that are visible."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    def value(self, scope: list[str], depth: int) -> str:
        if self.rng.random() < 0.3:
            name = self.name()
            self.emit(depth, f"{name} = arith.constant {self.rng.choice((0, 0, 1, 1, -1, 2, 7, 2**31 - 1, -(2**31)))} : i32")
            return name
        return self.rng.choice(scope)

    def condition(self, scope: list[str], depth: int) -> str:
        name = self.name()
        if self.rng.random() < 0.3:
            self.emit(depth, f"{name} = arith.constant {self.rng.choice(('true', 'false'))}")
        else:
            a, b = self.value(scope, depth), self.value(scope, depth)
            self.emit(depth, f"{name} = arith.cmpi {self.rng.choice(PREDICATES)}, {a}, {b} : i32")
        return name

    def statements(self, scope: list[str], depth: int, number: int) -> list[str]:
        scope = list(scope)
        for _ in range(number):
            scope.extend(self.statement(scope, depth))
        return scope

    def statement(self, scope: list[str], depth: int) -> list[str]:
        kind = self.rng.random()
        if depth < 4 and kind < 0.15:
            return self.branch(scope, depth)
        if depth < 4 and kind < 0.3:
            return self.loop(scope, depth)
        name = self.name()
        if kind < 0.4:
            c, a, b = self.condition(scope, depth), self.value(scope, depth), self.value(scope, depth)
            self.emit(depth, f"{name} = arith.select {c}, {a}, {b} : i32")
        elif kind < 0.5:
            self.emit(depth, f"{name} = func.call @g({self.value(scope, depth)}) : (i32) -> i32")
        elif kind < 0.55:
            self.emit(depth, f"memref.store {self.value(scope, depth)}, %m[%zero] : memref<1xi32>")
            return []
        elif kind < 0.6:
            self.emit(depth, f"{name} = memref.load %m[%zero] : memref<1xi32>")
        else:
            a = self.value(scope, depth)
            b = a if self.rng.random() < 0.2 else self.value(scope, depth)
            self.emit(depth, f"{name} = arith.{self.rng.choice(BINARY)} {a}, {b} : i32")
        return [name]

    def branch(self, scope: list[str], depth: int) -> list[str]:
        c, results = self.condition(scope, depth), [self.name() for _ in range(self.rng.randrange(1, 4))]
        types = ", ".join("i32" for _ in results)
        self.emit(depth, f"{', '.join(results)} = scf.if {c} -> ({types}) {{")
        for word in ("} else {", "}"):
            inner = self.statements(scope, depth + 1, self.rng.randrange(4))
            self.emit(depth + 1, f"scf.yield {', '.join(self.rng.choice(inner) for _ in results)} : {types}")
            self.emit(depth, word)
        return results

    def loop(self, scope: list[str], depth: int) -> list[str]:
        number = self.rng.randrange(1, 5)
        results, args = [self.name() for _ in range(number)], [self.name() for _ in range(number)]
        inits = [self.value(scope, depth) for _ in range(number)]
        low, high, index = self.rng.choice(("%zero", "%one")), self.rng.choice(("%zero", "%one", "%three", "%n")), self.name()
        types = ", ".join("i32" for _ in results)
        carried = ", ".join(f"{a} = {i}" for a, i in zip(args, inits))
        self.emit(depth, f"{', '.join(results)} = scf.for {index} = {low} to {high} step %one iter_args({carried}) -> ({types}) {{")
        number_of_trip = self.name()
        self.emit(depth + 1, f"{number_of_trip} = arith.index_cast {index} : index to i32")
        inner = self.statements([*scope[-3:], *args, number_of_trip], depth + 1, self.rng.randrange(1, 5))
        yielded = [self.rng.choice((arg, init, *self.rng.sample(inner, 4))) for arg, init in zip(args, inits)]
        self.emit(depth + 1, f"scf.yield {', '.join(yielded)} : {types}")
        self.emit(depth, "}")
        return self.rng.sample(results, self.rng.randrange(1, number + 1))  # the others are not used, or by the loop itself

    def program(self) -> str:
        self.emit(0, "func.func private @g(%a: i32) -> i32 {")
        scope = self.g_body()
        self.emit(1, f"return {scope} : i32")
        self.emit(0, "}")
        self.emit(0, "func.func @f(%x: i32, %y: i32, %n: index) -> (i32, i32, i32) {")
        for name, number in (("%zero", 0), ("%one", 1), ("%three", 3)):
            self.emit(1, f"{name} = arith.constant {number} : index")
        self.emit(1, "%m = memref.alloc() : memref<1xi32>")
        self.emit(1, "memref.store %x, %m[%zero] : memref<1xi32>")
        scope = self.statements(["%x", "%y"], 1, 10)
        last = self.name()
        self.emit(1, f"{last} = memref.load %m[%zero] : memref<1xi32>")
        self.emit(1, f"return {self.digest(scope)}, {scope[-1]}, {last} : i32, i32, i32")
        self.emit(0, "}")
        return "\n".join(self.lines) + "\n"

    def digest(self, scope: list[str]) -> str:
        """A number that depends on every value of the scope: nothing is dead."""
        self.emit(1, "%prime = arith.constant 31 : i32")
        total = "%prime"
        for value in scope:
            product, total_ = self.name(), self.name()
            self.emit(1, f"{product} = arith.muli {total}, %prime : i32")
            self.emit(1, f"{total_} = arith.addi {product}, {value} : i32")
            total = total_
        return total

    def g_body(self) -> str:
        self.emit(1, "%g0 = arith.constant 3 : i32")
        self.emit(1, "%g1 = arith.muli %a, %g0 : i32")
        self.emit(1, "%g2 = arith.muli %g0, %a : i32")
        self.emit(1, "%g3 = arith.subi %g1, %g2 : i32")
        self.emit(1, "%g4 = arith.addi %g3, %a : i32")
        return "%g4"


def numbers(module, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    found = []
    for n in (0, 1, 2, 5):
        x, y = rng.integers(-(2**31), 2**31, 2).astype(np.int32)
        results = run(module, "f", [np.array(x), np.array(y), np.array(n)])
        assert len(results) == 3
        found.append([int(result.reshape(-1)[0]) for result in results])
    return found


PASSES = {
    "canonicalize": canonicalize,
    "cse": merge_equal_ops,
    "dce": lambda module: remove_dead_ops(module, Purity(module)),
    "inline": lambda module: Inline().apply(module, PassContext()),
}


@pytest.mark.parametrize("seed", range(60))
def test_meaning_is_kept(seed: int) -> None:
    text = Writer(seed).program()
    module = parse_module(text)
    expected = numbers(module, seed)
    for name in ("cse", "canonicalize", "inline", "canonicalize", "cse", "dce", "canonicalize"):
        PASSES[name](module)
        engine = Engine()
        assert verify(module, engine), f"{name}\n{engine.show(engine.errors[0])}\n{text}"
        assert numbers(module, seed) == expected, f"{name}\n{text}\n{print_module(module)}"


@pytest.mark.parametrize("name", ["canonicalize", "cse", "dce"])
@pytest.mark.parametrize("seed", range(100, 110))
def test_a_second_run_changes_nothing(seed: int, name: str) -> None:
    module = parse_module(Writer(seed).program())
    PASSES[name](module)
    once = print_module(module)
    assert PASSES[name](module) == 0 and print_module(module) == once


@pytest.mark.parametrize("seed", range(200, 205))
def test_no_pass_leaves_an_op_without_a_location(seed: int) -> None:
    module = parse_module(Writer(seed).program(), "m.mlir")
    for name in PASSES:
        PASSES[name](module)
    assert "loc(unknown)" not in print_module(module, debuginfo=True)
