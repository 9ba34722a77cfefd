"""`linalg.generic` in reverse: one loop nest for each operand that carries a derivative, in which the body runs again and then back.

    forward    %y = generic ins(%x, %w) outs(%z)  { .. yield %s }
    backward   %dx = generic ins(%x, %w, %dy) outs(%dx so far)  { .. %c = ds/dx * dy; yield %acc + %c }

Nothing is saved but what the body reads. A sum hands its cotangent to its initial value; an extremum splits it (`extrema`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ComplexType, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from gradir.autodiff.reverse.cotangents import Cotangents
from gradir.autodiff.reverse.sweep import Sweep, Unit, structured
from gradir.autodiff.structured.accumulation import Contribution, accumulate
from gradir.autodiff.structured.bodies import Copy, More, captured_floats, cotangents_of, run_again, wins
from gradir.autodiff.structured.extrema import count_winners, shares
from gradir.autodiff.structured.kinds import Extremum, Kind, Point, Sum, kinds_of
from gradir.dialects.nests import Nest
from gradir.dialects.upstream import linalg
from gradir.ir.passes import error_at


@structured(linalg.GenericOp)
def reverse_generic(sweep: Sweep, op: linalg.GenericOp) -> None:
    """Copy the nest; record the nests that run back."""
    new = sweep.copy(op)
    assert isinstance(new, linalg.GenericOp)
    refuse_complex(new)
    nest = Nest.of(new)
    kinds = kinds_of(nest)
    assert all(kind is not None for kind in kinds), "spelled out before"
    unit, results = sweep.unit, list(new.results)

    def reverse(outer: Cotangents) -> None:
        found = [outer.get(r) if r in unit.active else None for r in results]
        if any(ct is not None for ct in found):
            outer.builder.loc = op.location
            _Reversal(unit, outer, nest, [k for k in kinds if k is not None], results, found).run()

    sweep.tape.append(reverse)


def refuse_complex(op: Operation) -> None:
    """Error AD001 for loop nests over complex numbers: scalars of theirs have no rules."""
    for value in (*op.operands, *op.results):
        if isinstance(value.type, TensorType) and isinstance(value.type.element_type, ComplexType):
            raise error_at(
                op,
                "no derivative of loop nests over complex numbers, and this one lies on an active path",
                part="autodiff",
                code="AD001",
                expected="elements of f64, f32, f16 or bf16",
                found=str(value.type),
                hint="write the nest on real and imaginary parts, or with nd ops",
            )


@dataclass
class _Reversal:
    unit: Unit
    outer: Cotangents
    nest: Nest
    kinds: Sequence[Kind]
    results: Sequence[SSAValue]
    found: Sequence[SSAValue | None]

    def run(self) -> None:
        outer, nest = self.outer, self.nest
        more: list[More] = []
        seeds: list[tuple[int, Kind, int]] = []
        for j, (kind, ct) in enumerate(zip(self.kinds, self.found)):
            if ct is None:
                continue
            map_ = nest.output_maps[j]
            if isinstance(kind, Extremum):
                seeds.append((j, kind, len(more)))
                more += [More(self._shares(j, kind, ct), map_), More(self.results[j], map_)]
                continue
            if isinstance(kind, Sum):
                outer.add(nest.outputs[j], ct)
            seeds.append((j, kind, len(more)))
            more.append(More(ct, map_))
        active = outer.active
        reads = [isinstance(kind, Point) for kind in self.kinds]
        for k, (value, map_) in enumerate(zip(nest.operands, nest.maps)):
            if value not in active or (k >= len(nest.inputs) and not (reads[k - len(nest.inputs)] and nest.body.args[k].uses)):
                continue
            if nest.body.args[k].uses:
                self._contribute(value, map_, k, more, seeds, reads)
        for value in captured_floats(nest):
            if value in active:
                self._contribute(value, AffineMap(nest.rank, 0, ()), None, more, seeds, reads)

    def _shares(self, j: int, kind: Extremum, ct: SSAValue) -> SSAValue:
        """The cotangent of one winner; the initial value takes its own."""
        builder, result = self.outer.builder, self.results[j]
        count = count_winners(builder, self.unit, self.nest, j, kind, result)
        initial = self.nest.outputs[j]
        found = shares(builder, initial, kind, result, count, ct, split=initial in self.outer.active)
        if found.initial is not None:
            self.outer.add(initial, found.initial)
        return found.each

    def _contribute(
        self, value: SSAValue, map_: AffineMap, k: int | None, more: list[More], seeds: list[tuple[int, Kind, int]], reads: list[bool]
    ) -> None:
        """The nest for operand k, or for a captured scalar."""
        nest = self.nest
        copy = run_again(self.unit, nest, self.outer.active, reads, more, self.outer.builder)
        cts = cotangents_of(copy)
        for j, kind, n in seeds:
            if isinstance(kind, Extremum):
                _seed_winner(copy, cts, kind, copy.given[n], copy.given[n + 1])
            else:
                cts.add(copy.yields[j], copy.given[n])
        cts.run(copy.sweep.tape)
        target = value if k is None else copy.block.args[k]
        if not cts.has(target):
            return
        inputs, maps = (*nest.operands, *(m.value for m in more)), (*nest.maps, *(m.map for m in more))
        accumulate(self.outer, value, map_, Contribution(inputs, maps, copy.block, cts.accumulator(target), nest.rank))


def _seed_winner(copy: Copy, cts: Cotangents, kind: Extremum, share: SSAValue, result: SSAValue) -> None:
    """The share goes to the term where it is the extremum."""
    term = copy.new(kind.term)
    if term in cts.active:
        cts.add(term, cts.t.where(wins(cts.t, copy, kind, result), share))
