"""`budget=BYTES`: the policies of loops, and of calls that are left, for which residuals fit at the least extra work.

One trial with policy `all` on a copy of the module tells of each loop what an iteration saves (r bytes), the carried values with which it
could run again (s bytes) and its trips N. With k bytes kept by the loops inside of an iteration and t the most that these take for a
while, and B = ceil(sqrt(N)), a loop takes

            kept from forward to backward     for a while in the backward part      runs again
    all     N (r + k)                         t                                     -
    none    N s                               r + k + t                             once
    sqrt    ceil(N / B) s                     B (r + k) + s + t                     once   where r + k <= 2 s
                                              B s + r + k + t                       twice  elsewhere

and the total is what the function keeps in a straight line, plus what its loops keep, plus the most that one of them takes for a while.
Every assignment is tried for a few loops; for more, the change that frees most bytes per unit of work is made until the total fits.
A run-time size counts with its declared maximum. A loop whose trips have none gets `sqrt`, the slowest to grow; its bytes are not counted.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from math import prod

from xdsl.dialects.builtin import IntegerAttr, StringAttr, TensorType, i64
from xdsl.ir import Block, Operation

from gradir.autodiff.reverse.costs import NOMINAL_SIZE, weight
from gradir.autodiff.reverse.functions import Program
from gradir.autodiff.reverse.measured import SITE, Measured, site_of
from gradir.autodiff.reverse.segments import segment_length
from gradir.dialects import ad, nd
from gradir.dialects.residuals import POLICIES, POLICY, budget_of, policy_of
from gradir.dialects.size_limits import limits_of
from gradir.dialects.types import shape_of
from gradir.dialects.upstream import func, scf
from gradir.ir.passes import location_text
from gradir.size_algebra import UNLIMITED, Dim, bounds

FEW = 2000
"""Assignments up to which all are tried."""


@dataclass(frozen=True)
class Loop:
    """A place with a choice: a loop of `trips` (None: known at run time only), or a call, whose one iteration is the callee."""

    site: int
    choices: tuple[str, ...]
    trips: int | None
    iteration: int
    state: int
    work: float
    inside: tuple[Loop, ...]

    def bytes(self, chosen: Mapping[int, str]) -> tuple[int, int]:
        """(kept, for a while)."""
        kept, most = together(self.inside, chosen)
        iteration, n, policy = self.iteration + kept, self.trips, chosen[self.site]
        if n is None:
            return 0, 0
        if policy == "none":
            return n * self.state, iteration + most
        length = segment_length(n)
        if policy == "segment":
            policy = "all" if iteration <= 2 * self.state else "none"
        if policy == "all":
            return n * iteration, most
        again = length * iteration + self.state if iteration <= 2 * self.state else length * self.state + iteration
        return -(-n // length) * self.state, again + most

    def extra(self, chosen: Mapping[int, str], times: int = 1) -> float:
        """The work of what runs again, in the loops inside too."""
        n = NOMINAL_SIZE if self.trips is None else self.trips
        policy = chosen[self.site]
        kept, _ = together(self.inside, chosen)
        large = self.iteration + kept > 2 * self.state
        runs = {"all": 0, "none": 1, "segment": int(large), "sqrt": 1 + large}[policy]
        return times * n * self.work * runs + sum(loop.extra(chosen, times * n) for loop in self.inside)


def together(loops: Sequence[Loop], chosen: Mapping[int, str]) -> tuple[int, int]:
    """What several loops keep, and the most that one of them takes for a while."""
    found = [loop.bytes(chosen) for loop in loops]
    return sum(kept for kept, _ in found), max((most for _, most in found), default=0)


@dataclass(frozen=True)
class Plan:
    """The loops of a function and what it keeps besides."""

    straight: int
    loops: tuple[Loop, ...]

    def total(self, chosen: Mapping[int, str]) -> int:
        return self.straight + sum(together(self.loops, chosen))

    def extra(self, chosen: Mapping[int, str]) -> float:
        return sum(loop.extra(chosen) for loop in self.loops)


def choose(plan: Plan, budget: int) -> tuple[dict[int, str], int]:
    """The policies with the least extra work whose residuals take at most `budget` bytes, else those with the least bytes; the bytes."""
    choices = {loop.site: loop.choices for loop in _all(plan.loops)}
    if prod(map(len, choices.values())) <= FEW:
        tried = [dict(zip(choices, policies)) for policies in product(*choices.values())]
    else:
        tried = list(_step_by_step(plan, choices))
    rated = [(plan.total(chosen), plan.extra(chosen), k) for k, chosen in enumerate(tried)]
    fitting = [(extra, total, k) for total, extra, k in rated if total <= budget]
    best = min(fitting)[2] if fitting else min(rated)[2]
    return tried[best], rated[best][0]


def _all(loops: Iterable[Loop]) -> Generator[Loop]:
    for loop in loops:
        yield loop
        yield from _all(loop.inside)


def _step_by_step(plan: Plan, choices: Mapping[int, Sequence[str]]) -> Generator[dict[int, str]]:
    """From the least work on, always the change that frees most bytes per unit of work."""
    chosen = {site: policies[0] for site, policies in choices.items()}
    yield chosen
    while True:
        total, extra = plan.total(chosen), plan.extra(chosen)
        changes = [{**chosen, site: p} for site, ps in choices.items() for p in ps[ps.index(chosen[site]) + 1 :]]
        better = [c for c in changes if plan.total(c) < total]
        if not better:
            return
        chosen = max(better, key=lambda c: (total - plan.total(c)) / max(1.0, plan.extra(c) - extra))
        yield chosen


# -- what a program's loops are


class Survey:
    """The loops and calls of a function as a trial found them."""

    def __init__(self, program: Program, measured: Measured, default: str, fixed: Mapping[int, str]) -> None:
        self.program, self.measured, self.fixed = program, measured, fixed
        self.choices = POLICIES[POLICIES.index(default) :]
        self.limits = {name: size for f in program.functions.values() for name, size in limits_of(f).items()}
        self.pending: list[str] = []

    def loops(self, block: Block) -> tuple[Loop, ...]:
        """Those of a block, the ones inside of others with these."""
        found: list[Loop] = []
        for op in block.ops:
            inside = tuple(loop for region in op.regions for inner in region.blocks for loop in self.loops(inner))
            callee = self._callee(op)
            if callee is not None:
                self.pending.append(callee.sym_name.data)
                inside = self.loops(callee.body.block)
                self.pending.pop()
            found += self._as_loop(op, inside) or inside
        return tuple(found)

    def straight(self) -> int:
        """Bytes that the function keeps outside of loops and calls."""
        return self._number(self.measured.straight) or 0

    def _callee(self, op: Operation) -> func.FuncOp | None:
        name = op.callee.string_value() if isinstance(op, func.CallOp | ad.CheckpointOp) else ""
        callee = self.program.functions.get(name)
        return callee if callee is not None and callee.body.blocks and callee.sym_name.data not in self.pending else None

    def _as_loop(self, op: Operation, inside: tuple[Loop, ...]) -> tuple[Loop, ...]:
        site = site_of(op)
        found = self.measured.sites.get(site) if site is not None else None
        if site is None or found is None:
            return ()
        trips = self._number(found.trips)
        choices = self.choices if trips is not None else self.choices[-1:]
        choices = (self.fixed[site],) if site in self.fixed else ("all", "none") if isinstance(op, func.CallOp) else choices
        body = op.body if isinstance(op, scf.ForOp) else op.after_region if isinstance(op, scf.WhileOp) else None
        work = self.work(body.block) if body is not None else self._of_call(op)
        return (Loop(site, choices, trips, self._number(found.iteration) or 0, self._number(found.state) or 0, work, inside),)

    def _number(self, size: Dim) -> int | None:
        """A size at its largest; None if nothing limits it."""
        if size is None or isinstance(size, int):
            return size
        most = bounds(size, self._limits_of)[1]
        return None if most >= UNLIMITED else most

    def _limits_of(self, name: str) -> tuple[int, int]:
        found = self.limits.get(name)
        return (0, UNLIMITED) if found is None or found.max is None else (found.min, found.max)

    def work(self, block: Block) -> float:
        """An estimate: elements computed, times the terms of each in a contraction."""
        total = 0.0
        for op in block.ops:
            inner = sum(self.work(b) for region in op.regions for b in region.blocks)
            if isinstance(op, scf.ForOp):
                site = site_of(op)
                found = self.measured.sites.get(site) if site is not None else None
                inner *= (self._number(found.trips) if found is not None else None) or NOMINAL_SIZE
            total += inner + self._of_call(op) + _own_work(op)
        return total

    def _of_call(self, op: Operation) -> float:
        callee = self._callee(op)
        if callee is None:
            return 0.0
        self.pending.append(callee.sym_name.data)
        found = self.work(callee.body.block)
        self.pending.pop()
        return found


def _own_work(op: Operation) -> float:
    elements = sum(weight(r.type) for r in op.results) / 8
    if isinstance(op, nd.DotGeneralOp):
        shape = shape_of(op.lhs)
        sizes = (shape[k] for k in op.numbers("lhs_contract"))
        return elements * prod(n if isinstance(n, int) else NOMINAL_SIZE for n in sizes)
    return elements if any(isinstance(r.type, TensorType) for r in op.results) else 0.0


# -- requests


def choice_of(program: Program, request: Operation) -> tuple[str, int]:
    """The policy and the budget of a request."""
    policy, budget = program.choice
    return policy_of(request, policy), budget_of(request, budget)


@contextmanager
def chosen_for(program: Program, request: ad.Request, primal: func.FuncOp, wrt: Sequence[int], seeds: Sequence[int]) -> Generator[None]:
    """While a request is resolved: its policy holds, and with a budget every loop says which one it has."""
    outer, program.choice = program.choice, choice_of(program, request)
    marked: list[Operation] = []
    try:
        if program.choice[1] and not isinstance(request, ad.JvpOp):
            program.assignment += 1
            marked = _mark(program, request, primal, wrt, seeds)
        yield
    finally:
        program.choice = outer
        for op in marked:
            del op.attributes[POLICY]


def _mark(program: Program, request: ad.Request, primal: func.FuncOp, wrt: Sequence[int], seeds: Sequence[int]) -> list[Operation]:
    """Write the chosen policies on the loops and calls that have none; which these are."""
    policy, budget = program.choice
    copy = program.module.clone()
    sites: dict[int, Operation] = {}
    fixed: dict[int, str] = {}
    for op, other in zip(program.module.walk(), copy.walk()):
        if isinstance(op, scf.ForOp | scf.WhileOp | func.CallOp | ad.CheckpointOp):
            other.attributes.pop(POLICY, None)
            other.attributes[SITE] = IntegerAttr(len(sites), i64)
            if POLICY in op.attributes or isinstance(op, ad.CheckpointOp):
                fixed[len(sites)] = policy_of(op, "none")
            sites[len(sites)] = op
    measured = Measured()
    trial = Program(copy, measured=measured)
    again = trial.functions[primal.sym_name.data]
    label = f"{request.name} @{primal.sym_name.data} wrt {list(wrt)}"
    trial.reversed_block(again, wrt, seeds=seeds, given=isinstance(request, ad.VjpOp), request=label)
    survey = Survey(trial, measured, policy, fixed)
    chosen, total = choose(Plan(survey.straight(), survey.loops(again.body.block)), budget)
    if total > budget:
        where = location_text(request.location)
        warnings.warn(
            f"{where + ': ' if where else ''}{request.name}: residuals of @{primal.sym_name.data} take at least {total} bytes, "
            f"more than the budget of {budget}",
            RuntimeWarning,
            stacklevel=2,
        )
    marked = [sites[site] for site in chosen if site not in fixed]
    for op, name in ((sites[site], name) for site, name in chosen.items() if site not in fixed):
        op.attributes[POLICY] = StringAttr(name)
    return marked
