"""Random programs with control flow, as Python source: loops in loops, branches, scans, swaps, arguments as results, results twice.

Values are integers small enough that f32 is exact: products and sums are clipped. Whatever order a compiler chooses, the bits are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import gradir as gd

Value = tuple[str, str]
"""Python name and kind: `s` scalar, `v` vector, `m` matrix (floats), `i` integer scalar."""

ARGUMENTS: tuple[Value, ...] = (("x", "m"), ("y", "m"), ("v", "v"), ("w", "v"), ("s", "s"), ("n", "i"))


SIZES = ((3, 4), (1, 1), (2, 1), (1, 9), (5, 16), (17, 40))


@dataclass(frozen=True)
class Program:
    """Python source of `f`, and the sizes of its arguments: matrices are `rows` x `columns`, vectors `columns` long."""

    source: str
    rows: int
    columns: int

    def function(self) -> Callable[..., Any]:
        """The function `f`."""
        scope: dict[str, Any] = {"gd": gd, "np": np}
        exec(compile(self.source, "<random program>", "exec"), scope)
        return scope["f"]

    def inputs(self, seed: int, dtype: Any = np.float32) -> list[Any]:
        """Small integers, one array per argument."""
        rng = np.random.default_rng(seed)
        shapes = {"s": (), "v": (self.columns,), "m": (self.rows, self.columns)}
        return [
            np.asarray(rng.integers(-1, 5), np.int32) if kind == "i" else np.asarray(rng.integers(-4, 5, shapes[kind]), dtype)
            for _, kind in ARGUMENTS
        ]


def program(choose: Callable[[int], int], *, smooth: bool = False) -> Program:
    """A program; `choose(n)` picks a number below n. `smooth`: with derivatives, no longer exact."""
    rows, columns = SIZES[choose(len(SIZES))]
    return Program(Writer(choose, rows, columns, smooth).source(1 + choose(4)), rows, columns)


@dataclass
class Writer:
    """Writes one function; `choose(n)` picks a number below n (0 is the simplest choice)."""

    choose: Callable[[int], int]
    rows: int
    columns: int
    smooth: bool = False
    lines: list[str] = field(default_factory=list[str])
    depth: int = 1
    count: int = 0

    def source(self, statements: int) -> str:
        """`def f(x, y, v, w, s, n)` with that many statements at its outermost level."""
        known = list(ARGUMENTS)
        for _ in range(statements):
            self.statement(known, nesting=0)
        floats = [value for value in known if value[1] != "i"] if self.smooth else known
        results = [self.pick(floats)[0] for _ in range(1 + self.choose(4))]
        self.line(f"return ({', '.join(results)},)")
        return "\n".join([f"def f({', '.join(name for name, _ in ARGUMENTS)}):", *self.lines])

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def pick(self, values: Sequence[Value]) -> Value:
        """The latest values are the simplest choice, and the likelier one."""
        return values[len(values) - 1 - min(self.choose(len(values)) for _ in range(3))]

    def of(self, known: Sequence[Value], kind: str) -> str:
        return self.pick([value for value in known if value[1] == kind])[0]

    def statement(self, known: list[Value], nesting: int) -> None:
        makers = [self.elementwise, self.elementwise, self.move, self.move, self.reduction, self.constant, self.integer]
        if nesting < 2:
            makers += [self.loop, self.branch, self.loop_while, self.scan]
        known.extend(makers[self.choose(len(makers))](known, nesting))

    def assign(self, kind: str, expression: str) -> list[Value]:
        name = self.fresh()
        self.line(f"{name} = {expression}")
        return [(name, kind)]

    # one result ----------------------------------------------------------------------------------------------------

    def elementwise(self, known: list[Value], _: int) -> list[Value]:
        kind = "svm"[self.choose(3)]
        a, b = self.of(known, kind), self.of(known, kind)
        forms = (
            f"{a} + {b}",
            f"{a} - {b}",
            f"{a} * {b}",
            f"gd.maximum({a}, {b})",
            f"gd.where({a} > {b}, {b}, {a})",
            f"gd.relu({a})",
            f"-{a}",
        )
        return self.assign(kind, self.bounded(forms[self.choose(len(forms))]))

    def bounded(self, expression: str) -> str:
        return f"gd.tanh({expression})" if self.smooth else f"gd.clip({expression}, -50.0, 50.0)"

    def move(self, known: list[Value], _: int) -> list[Value]:
        m, v = self.of(known, "m"), self.of(known, "v")
        i, (rows, columns) = self.of(known, "i"), (self.rows, self.columns)
        forms = (
            ("m", f"gd.flip({m}, 1)"),
            ("v", f"{m}[gd.clip({i}, 0, {rows - 1})]"),
            ("m", f"gd.dynamic_update_slice({m}, gd.expand_dims({v}, 0), [{i}, np.int32(0)])"),
            ("m", f"gd.broadcast({v}, ({rows}, {columns}))"),
            ("v", f"gd.concatenate([{v}[1:], {v}[:1]])"),
            ("m", f"gd.concatenate([{m}[1:], gd.expand_dims({v}, 0)])"),
            ("m", f"gd.transpose(gd.reshape({m}, ({columns}, {rows})))"),
            ("v", f"gd.take({v}, np.arange({columns}, dtype=np.int32) // 2 + 1)"),
            ("v", f"gd.dynamic_update_slice({v}, {m}[{rows - 1}, {columns // 2}:], [{i}])"),
            ("v", f"gd.scatter_add({v}, np.arange({rows}, dtype=np.int32) // 2, gd.clip({m}[:, 0], -3.0, 3.0))"),
            ("m", f"gd.pad({m}[:-1, 1:], ((0, 1), (1, 0)))"),
        )
        kind, expression = forms[self.choose(len(forms))]
        return self.assign(kind, self.bounded(expression) if "scatter" in expression else expression)

    def reduction(self, known: list[Value], _: int) -> list[Value]:
        m, v = self.of(known, "m"), self.of(known, "v")
        forms = (
            ("s", f"gd.sum({v})"),
            ("v", f"gd.sum({m}, 0)"),
            ("s", f"gd.max({m})"),
            ("v", f"gd.max({m}, 0)"),
            ("m", f"{m} * gd.expand_dims(gd.sum({m}, 1), 1)"),
            ("m", f"gd.expand_dims({m} @ {v}, 1) - {m}"),
            ("s", f"{v} @ {v}"),
            ("v", f"gd.sum({m}, 1) @ {m}"),
            ("m", f"{m} @ {self.bounded(f'gd.transpose({m}) @ {m}')}"),
        )
        kind, expression = forms[self.choose(len(forms))]
        return self.assign(kind, self.bounded(expression))

    def constant(self, _: list[Value], __: int) -> list[Value]:
        kind = "svm"[self.choose(3)]
        number = ("0.0", "1.0", "2.0", "-3.0")[self.choose(4)]
        shape = {"s": (), "v": (self.columns,), "m": (self.rows, self.columns)}[kind]
        return self.assign(kind, f"gd.full({shape}, {number}, x.dtype)")

    def integer(self, known: list[Value], _: int) -> list[Value]:
        i, s = self.of(known, "i"), self.of(known, "s")
        forms = (f"{i} + 1", f"gd.clip({i} * 2, 0, 5)", f"3 - {i}", f"gd.clip({s}, -2.0, 4.0).astype(np.int32)", "gd.asarray(np.int32(2))")
        return self.assign("i", forms[self.choose(len(forms))])

    # regions -------------------------------------------------------------------------------------------------------

    def state(self, known: list[Value]) -> list[Value]:
        return [self.pick(known) for _ in range(1 + self.choose(4))]

    def body(self, head: str, known: list[Value], kinds: Sequence[str], nesting: int, extra: str = "") -> None:
        """A nested function that returns values of these kinds."""
        self.line(head)
        self.depth += 1
        inner = list(known)
        for _ in range(1 + self.choose(3)):
            self.statement(inner, nesting + 1)
        names = [self.of(inner, kind) for kind in kinds]
        self.line(f"return {extra.format(*names)}" if extra else f"return ({', '.join(names)},)")
        self.depth -= 1

    def results(self, kinds: Sequence[str], expression: str) -> list[Value]:
        names = [self.fresh() for _ in kinds]
        self.line(f"({', '.join(names)},) = {expression}")
        return list(zip(names, kinds))

    def loop(self, known: list[Value], nesting: int) -> list[Value]:
        state, name = self.state(known), self.fresh()
        carried = [(self.fresh(), kind) for _, kind in state]
        lower, upper = ("0", "1", "2")[self.choose(3)], ("3", f"gd.clip({self.of(known, 'i')}, 0, 4)", "1", "2")[self.choose(4)]
        self.line(f"def {name}(i{name}, state):")
        self.depth += 1
        self.line(f"({', '.join(n for n, _ in carried)},) = state")
        self.depth -= 1
        inner = [*known, *carried, (f"i{name}", "i")]
        self.body_after(inner, [kind for _, kind in state], nesting)
        start = ", ".join(n for n, _ in state)
        return self.results([kind for _, kind in state], f"gd.fori_loop({lower}, {upper}, {name}, ({start},))")

    def body_after(self, inner: list[Value], kinds: Sequence[str], nesting: int, prefix: str = "") -> None:
        self.depth += 1
        for _ in range(1 + self.choose(3)):
            self.statement(inner, nesting + 1)
        names = [self.of(inner, kind) for kind in kinds]
        self.line(f"return ({prefix}{', '.join(names)},)")
        self.depth -= 1

    def loop_while(self, known: list[Value], nesting: int) -> list[Value]:
        state, name = self.state(known), self.fresh()
        carried = [(self.fresh(), kind) for _, kind in state]
        limit = ("2", "3", "0", f"gd.clip({self.of(known, 'i')}, 0, 3)")[self.choose(4)]
        self.line(f"def {name}(state):")
        self.depth += 1
        self.line(f"(k{name}, {', '.join(n for n, _ in carried)},) = state")
        self.depth -= 1
        inner = [*known, *carried, (f"k{name}", "i")]
        self.body_after(inner, [kind for _, kind in state], nesting, prefix=f"k{name} + 1, ")
        start = ", ".join(n for n, _ in state)
        condition = f"lambda state: state[0] < {limit}"
        return self.results(["i", *(kind for _, kind in state)], f"gd.while_loop({condition}, {name}, (gd.asarray(np.int32(0)), {start},))")

    def branch(self, known: list[Value], nesting: int) -> list[Value]:
        kinds = [kind for _, kind in self.state(known)]
        name = self.fresh()
        s, i = self.of(known, "s"), self.of(known, "i")
        for side in "ab":
            self.body(f"def {name}{side}():", known, kinds, nesting)
        test = (f"{s} > 0", f"{i} % 2 == 1")[self.choose(2)]
        return self.results(kinds, f"gd.cond({test}, {name}a, {name}b)")

    def scan(self, known: list[Value], nesting: int) -> list[Value]:
        state, name, m = self.state(known), self.fresh(), self.of(known, "m")
        carried = [(self.fresh(), kind) for _, kind in state]
        self.line(f"def {name}(state, row):")
        self.depth += 1
        self.line(f"({', '.join(n for n, _ in carried)},) = state")
        inner = [*known, *carried, (f"row{name}", "v")]
        self.line(f"row{name} = row")
        for _ in range(1 + self.choose(3)):
            self.statement(inner, nesting + 1)
        names = [self.of(inner, kind) for _, kind in state]
        self.line(f"return ({', '.join(names)},), {self.of(inner, 'v')}")
        self.depth -= 1
        stacked = self.fresh()
        names = [self.fresh() for _ in state]
        start = ", ".join(n for n, _ in state)
        self.line(f"({', '.join(names)},), {stacked} = gd.scan({name}, ({start},), {m})")
        return [*zip(names, (kind for _, kind in state)), (stacked, "m")]
