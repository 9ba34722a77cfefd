"""Whole functions in reverse: value and gradient in one function, or the pair (forward, backward) for calls and embedding."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.dialects.builtin import LocationAttr, ModuleOp, StringAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir import size_algebra
from gradir.autodiff.names import name_copies
from gradir.autodiff.reverse import branches, calls, loops, ruled_calls, while_loops
from gradir.autodiff.reverse.cotangents import Cotangents
from gradir.autodiff.reverse.fences import fence
from gradir.autodiff.reverse.measured import Measured
from gradir.autodiff.reverse.report import Ledger, Residual
from gradir.autodiff.reverse.residuals import plan, redo, substitute, why_kept
from gradir.autodiff.reverse.straight_line import StraightLine
from gradir.autodiff.reverse.sweep import Sweep, Unit
from gradir.autodiff.spell_out import activity_of
from gradir.autodiff.tensors import INDEX
from gradir.dialects import nd
from gradir.dialects.types import shape_of
from gradir.dialects.upstream import func
from gradir.ir.builder import Builder, new_function
from gradir.ir.passes import error_at
from gradir.ir.structure import move_to_end, move_to_start, single_block
from gradir.size_algebra import Dim

REGISTERED = (branches, calls, loops, ruled_calls, while_loops)
"""Importing these registers the structured ops."""


@dataclass(frozen=True)
class Pair:
    """Names of the two halves, and the types of what passes between them."""

    forward: str
    backward: str
    residual_types: tuple[Attribute, ...]
    residuals: tuple[Residual, ...] = ()
    """Their records, when the ledger is on."""
    own: Dim = 0
    """In a trial: their bytes, without what loops and calls inside hold."""


@dataclass
class Program:
    """The module under differentiation: its functions, the names taken, what was generated already."""

    module: ModuleOp
    functions: dict[str, func.FuncOp] = field(default_factory=dict[str, func.FuncOp])
    symbols: int = 0
    pairs: dict[tuple[object, ...], Pair] = field(default_factory=dict[tuple[object, ...], Pair])
    """By callee, active arguments, wanted results, and what is kept of loops."""
    tangents: dict[tuple[str, tuple[bool, ...], tuple[bool, ...]], str] = field(
        default_factory=dict[tuple[str, tuple[bool, ...], tuple[bool, ...]], str]
    )
    """Forward-mode functions by callee, active arguments, wanted results."""
    batches: dict[tuple[str, tuple[bool, ...], int | str], str] = field(default_factory=dict[tuple[str, tuple[bool, ...], int | str], str])
    """Batched functions by callee, arguments with lanes, number of lanes."""
    batching: dict[tuple[str, tuple[bool, ...], int | str], str] = field(default_factory=dict[tuple[str, tuple[bool, ...], int | str], str])
    """Those that are being made: a rule may name itself."""
    pending: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])
    """What is being made, outermost first: from which function, what, and for which arguments. Meeting one again is recursion."""

    choice: tuple[str, int] = ("all", 0)
    """What loops keep that do not say it themselves, and the bytes that all of them may keep; 0 is no limit."""
    assignment: int = 0
    """Counts the requests with a budget: each has policies of its own."""
    measured: Measured | None = None
    """In a trial: what is learned about loops and calls."""
    ledger: Ledger = field(default_factory=Ledger)
    """What the generated functions keep for their backward parts."""

    def __post_init__(self) -> None:
        for op in self.module.body.block.ops:
            if isinstance(op, func.FuncOp):
                self.functions[op.sym_name.data] = op

    def function(self, name: str, at: Operation) -> func.FuncOp:
        """The function called `name`; it must have a body, of one block. Raises GradirError AD004, GR063."""
        found = self.functions.get(name)
        if found is None or not found.body.blocks:
            raise error_at(
                at,
                f"cannot differentiate @{name}: " + ("no such function in the module" if found is None else "it has no body"),
                part="autodiff",
                code="AD004",
                expected="a func.func with a body in this module",
                found=", ".join(f"@{n}" for n in list(self.functions)[:8]) or "no functions",
            )
        single_block(found)
        return found

    def fresh_name(self, stem: str) -> str:
        """`stem`, or `stem_N` when it is taken."""
        name, n = stem, 0
        while name in self.functions or name in self.batching.values():
            name, n = f"{stem}_{n}", n + 1
        return name

    def fresh_symbol(self) -> str:
        """A name for a run-time size that no type in the module uses."""
        self.symbols += 1
        return f"trips{self.symbols - 1}"

    def insert(self, new: func.FuncOp, after: func.FuncOp) -> str:
        """Add a generated function next to the one that it came from."""
        self.module.body.block.insert_op_after(new, after)
        self.functions[new.sym_name.data] = new
        return new.sym_name.data

    @contextmanager
    def making(self, primal: func.FuncOp, what: str, *which: object) -> Generator[None]:
        """While something is made from `primal`. GradirError AD006 where that is going on already: the function calls itself."""
        stem = primal.sym_name.data
        if (stem, what, *which) in self.pending:
            raise error_at(
                primal,
                f"@{stem} calls itself: recursion has no {what} here",
                part="autodiff",
                code="AD006",
                expected="a call graph without cycles",
                found=" -> ".join(f"@{name}" for name in [*(one[0] for one in self.pending), stem]),
                hint="write the recursion as a loop",
            )
        self.pending.append((stem, what, *which))
        try:
            yield
        finally:
            self.pending.pop()

    def resolve(self, call: func.CallOp) -> func.FuncOp:
        return self.function(call.callee.string_value(), call)

    # ---------------------------------------------------------------------------------------------------------------

    def combined(
        self,
        primal: func.FuncOp,
        wrt: Sequence[int],
        *,
        seeds: Sequence[int],
        given: bool,
        name: str,
        request: str,
        keep_results: bool = True,
    ) -> str:
        """The function of `reversed_block`, beside `primal`."""
        block, outputs = self.reversed_block(primal, wrt, seeds=seeds, given=given, request=request, keep_results=keep_results)
        new = new_function(self.fresh_name(name), block, [v.type for v in outputs], private=True, loc=primal.location)
        self.ledger.finish(new.sym_name.data, block)
        return self.insert(new, primal)

    def reversed_block(
        self, primal: func.FuncOp, wrt: Sequence[int], *, seeds: Sequence[int], given: bool, request: str, keep_results: bool = True
    ) -> tuple[Block, list[SSAValue]]:
        """A block that returns the results of `primal`, then the cotangents of the arguments in `wrt`; what it returns.

        `seeds` are the results that carry a cotangent: 1 each, or (`given`) one more argument per result.
        """
        source = primal.body.block
        arguments = [k in wrt for k in range(len(source.args))]
        kinds = primal.function_type.outputs.data
        unit = Unit(self, activity_of(primal, arguments, [k in seeds for k in range(len(kinds))], self.resolve), request)
        block = Block(arg_types=[*(a.type for a in source.args), *(kinds if given else ())])
        _copy_names(source, block)
        unit.bind(source.args, block.args)
        sweep = Sweep(unit, block)
        results = sweep.forward(source)
        backward = Block()
        cts = Cotangents(Builder(backward, primal.location), unit.active)
        given_or_one = [block.args[len(source.args) + k] if given else cts.t.full(1.0, kinds[k]) for k in seeds]
        for k, seed in zip(seeds, given_or_one):
            cts.add(results[k], seed)
        cts.run(sweep.tape)
        cts.builder.loc = primal.location
        gradients = [cts.get_or_zeros(block.args[k]) for k in wrt]
        outputs = [*(results if keep_results else []), *gradients]
        cts.builder.op(func.ReturnOp, outputs)
        line = StraightLine(block, backward, given_or_one, outputs)
        for value, reason in line.kept.items():
            self._note(primal, value, self.ledger.reader(value, backward), reason)
        if self.measured is not None:
            self.measured.straight = self.measured.own(line.kept)
        fence(line)
        move_to_end(backward, block)
        return block, outputs

    def split(
        self,
        primal: func.FuncOp,
        wrt: tuple[bool, ...],
        wanted: tuple[bool, ...],
        request: str,
        *,
        names: tuple[str, str] | None = None,
        at: LocationAttr | None = None,
    ) -> Pair:
        """The pair of `primal` for the flagged arguments and results."""
        stem = primal.sym_name.data
        key = (stem, wrt, wanted, self.choice, self.assignment if self.choice[1] else 0)
        if names is None and key in self.pairs:
            return self.pairs[key]
        with self.making(primal, "reverse mode", wrt, wanted):
            pair = self._split(primal, wrt, wanted, request, names or (f"{stem}.fwd", f"{stem}.bwd"))
        self.pairs.setdefault(key, pair)
        return pair

    def _split(self, primal: func.FuncOp, wrt: tuple[bool, ...], wanted: tuple[bool, ...], request: str, names: tuple[str, str]) -> Pair:
        source = primal.body.block
        kinds = primal.function_type.outputs.data
        unit = Unit(self, activity_of(primal, wrt, wanted, self.resolve), request)
        forward = Block(arg_types=[a.type for a in source.args])
        _copy_names(source, forward)
        unit.bind(source.args, forward.args)
        for a, on in zip(forward.args, wrt):
            if on:
                unit.active.add(a)
        sweep = Sweep(unit, forward)
        results = sweep.forward(source)

        seeds = [k for k, on in enumerate(wanted) if on]
        backward = Block(arg_types=[kinds[k] for k in seeds])
        cts = Cotangents(Builder(backward, primal.location), unit.active)
        for k, ct in zip(seeds, backward.args):
            cts.add(results[k], ct)
        cts.run(sweep.tape)
        cts.builder.loc = primal.location
        gradients = [cts.get_or_zeros(a) for a, on in zip(forward.args, wrt) if on]
        cts.builder.op(func.ReturnOp, gradients)

        line = StraightLine(forward, backward, backward.args, ())
        readers = {value: self.ledger.reader(value, backward) for value in line.kept}
        fence(line)
        residuals = plan(forward, backward, lambda v: False)
        for value in residuals.saved:
            self._note(primal, value, readers.get(value, ""), line.kept.get(value, ""))
        values: dict[SSAValue, SSAValue] = {}
        for n, value in enumerate(residuals.saved):
            values[value] = backward.insert_arg(value.type, n)
        prefix = Block()
        redo(Builder(prefix, primal.location), residuals.redo, values)
        name_copies(values)
        substitute(backward, values)
        move_to_start(prefix, backward)
        sizes = _hand_over_sizes(Builder(forward, primal.location), backward, len(residuals.saved))
        Builder(forward, primal.location).op(func.ReturnOp, [*results, *residuals.saved, *sizes])
        kinds_saved = tuple(v.type for v in (*residuals.saved, *sizes))
        records = self.ledger.records(residuals.saved)
        self.ledger.finish(names[1], backward)
        last = primal
        made: list[str] = []
        for stem, block, outputs in ((names[0], forward, [*kinds, *kinds_saved]), (names[1], backward, [g.type for g in gradients])):
            new_fn = new_function(self.fresh_name(stem), block, outputs, private=True, loc=primal.location)
            made.append(self.insert(new_fn, last))
            last = new_fn
        return Pair(made[0], made[1], kinds_saved, records, self.measured.own(residuals.saved) if self.measured is not None else 0)

    def _note(self, primal: func.FuncOp, value: SSAValue, reader: str, reason: str) -> None:
        """Record a value of a whole function that its backward part reads."""
        where = f"@{primal.sym_name.data}"
        self.ledger.keep(value, value, where=where, why=why_kept(value, reader, reason))


def _hand_over_sizes(forward: Builder, backward: Block, at: int) -> list[SSAValue]:
    """The sizes that `backward` reads by name and that no type of its arguments mentions, as values that the forward half returns.

    They become arguments of `backward` from position `at` on, and are bound there.
    """
    known = {size for a in backward.args if isinstance(a.type, TensorType) for size in shape_of(a.type)}
    known |= {op.sym.data for op in backward.walk() if isinstance(op, nd.BindOp)}
    read = [name for op in backward.walk() if isinstance(op, nd.SymbolOp) for name in size_algebra.names_in(op.sym.data)]
    missing = [name for name in dict.fromkeys(read) if name not in known]
    prefix = Builder(Block(), forward.loc)
    for n, name in enumerate(missing):
        prefix.op(nd.BindOp, [backward.insert_arg(INDEX, at + n)], (), {"sym": StringAttr(name)})
    move_to_start(prefix.block, backward)
    return [forward(nd.SymbolOp, [], [INDEX], {"sym": StringAttr(name)}) for name in missing]


def _copy_names(source: Block, block: Block) -> None:
    for old, new in zip(source.args, block.args):
        new.name_hint = old.name_hint
        new.location = old.location
