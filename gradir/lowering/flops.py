"""How many floating-point operations a function of level 1 or 2 executes: `flops(module, "f")`.

One per element and operation: an addition, a product, a comparison, a choice (`select`), a conversion, and each transcendental alike. A
product of matrices is 2 m n k, a reduction one per element it reads, a factorisation its textbook number. Moving data (reshapes, slices,
gathers, constants, broadcasts) and arithmetic on integers, indices and booleans are free. A loop counts its body times its trips, a call
its callee, a branch the dearest side, an op with a region its region per element, a loop nest (`linalg.generic`) its body per point.

Count what is executed: after `nd-expand` and the simplifications, the last form of level 1. Before them, composites count as their
expansions, and products with zeros and values nobody reads count too.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import ComplexType, FloatAttr, IndexType, IntegerType, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.nd.library import CustomCallOp
from gradir.dialects.nests import Nest
from gradir.dialects.types import shape_of
from gradir.dialects.upstream import arith, func, linalg, scf
from gradir.ir.builder import Builder
from gradir.ir.passes import error_at


def flops(module: ModuleOp, entry: str | None = None, *, trips: int | None = None) -> int:
    """The floating-point operations of one run of `entry` (default: the only public function).

    `trips` stands for every number of trips and every size that is known only at run time. GradirError GR071 where one is needed and
    not given.
    """
    functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, func.FuncOp)}
    public = [name for name, op in functions.items() if op.sym_visibility is None and op.body.blocks]
    name = entry if entry is not None else public[0] if len(public) == 1 else None
    if name is None or name not in functions:
        raise error_at(
            module,
            "no such function to count" if name else "several functions to count",
            part="graph",
            code="GR072",
            expected=", ".join(f"@{n}" for n in public) or "a public function",
            found=f"@{name}" if name else f"{len(public)} public functions and no name",
        )
    return Counter(functions, trips).function(functions[name])


@dataclass
class Counter:
    """Counts functions, each once."""

    functions: dict[str, func.FuncOp]
    trips: int | None = None
    done: dict[str, int] = field(default_factory=dict[str, int])

    def function(self, function: func.FuncOp) -> int:
        """What one call costs; 0 for one without a body."""
        name = function.sym_name.data
        if name not in self.done:
            self.done[name] = 0  # a function that calls itself counts once
            self.done[name] = self.block(function.body.block) if function.body.blocks else 0
        return self.done[name]

    def block(self, block: Block) -> int:
        return sum(self.op(op) for op in block.ops)

    def op(self, op: Operation) -> int:
        """One execution of `op`, regions included."""
        rule = RULES.get(type(op))
        if rule is not None:
            return rule(self, op)
        if isinstance(op, nd.Composite):
            return self._expanded(op)
        if isinstance(op, nd.RegionOp) and op.regions:
            return self._per_element(op, _applications(self, op))
        if not isinstance(op, nd.NdOp):
            return _scalar(op) if op.name.startswith(SCALARS) else 0
        if type(op) in MOVES:
            return 0
        return _elementwise(self, op)

    def size(self, value: SSAValue) -> int:
        """The number of elements."""
        return self.known(value.owner if isinstance(value.owner, Operation) else None, *shape_of(value))

    def known(self, at: Operation | None, *sizes: int | str | None) -> int:
        """The product of sizes, `trips` in place of each that only the run knows."""
        total = 1
        for n in sizes:
            if isinstance(n, int):
                total *= n
            elif self.trips is None:
                raise unknown(at, f"a dimension of size {n or '?'}")
            else:
                total *= self.trips
        return total

    def _expanded(self, op: nd.Composite) -> int:
        parts = Block()
        op.decompose(Builder(parts, op.location), list(op.operands))
        try:
            return self.block(parts)
        finally:
            for part in list(parts.ops)[::-1]:
                part.detach()
                part.erase()

    def _per_element(self, op: Operation, times: int) -> int:
        return times * sum(self.block(region.block) for region in op.regions if region.blocks)


def unknown(op: Operation | None, what: str) -> Exception:
    """The error for a number that only the run knows."""
    return error_at(
        cast("Operation", op),
        f"the cost depends on {what}, known only at run time",
        part="graph",
        code="GR071",
        expected="static sizes and trip counts, or a number to stand for them",
        found=what,
        hint="pass trips=N (count-flops{trips=N})",
    )


def is_floating(kind: Attribute) -> bool:
    """A type of floating-point or complex numbers, or a tensor of them."""
    element: Attribute = kind.element_type if isinstance(kind, TensorType) else kind
    return not isinstance(element, IntegerType | IndexType)


def _elementwise(counter: Counter, op: Operation) -> int:
    """One per element where numbers are floating point on either side."""
    if not op.results or not any(is_floating(v.type) for v in (*op.operands, *op.results) if isinstance(v.type, TensorType)):
        return 0
    return max(counter.size(r) for r in op.results) * WEIGHTS.get(type(op), 1) * _of_complex(op)


def _of_complex(op: Operation) -> int:
    """A complex product is six real ones; other complex ops two."""
    if not any(isinstance(v.type, TensorType) and isinstance(v.type.element_type, ComplexType) for v in (*op.operands, *op.results)):
        return 1
    return 6 if isinstance(op, nd.MulOp | nd.MulStrongOp | nd.DivOp) else 2


def _loop(counter: Counter, op: Any) -> int:
    inside = counter.block(op.body.block)
    if not inside:
        return 0
    bounds = [_constant(v) for v in op.operands[:3]]
    lower, upper, step = bounds
    if lower is None or upper is None or step is None:
        if counter.trips is None:
            raise unknown(op, "the trips of a loop")
        return counter.trips * inside
    return max(0, -(-(upper - lower) // step)) * inside


def _while(counter: Counter, op: Any) -> int:
    before, after = counter.block(op.before_region.block), counter.block(op.after_region.block)
    if not before and not after:
        return 0
    if counter.trips is None:
        raise unknown(op, "the trips of a loop")
    return (counter.trips + 1) * before + counter.trips * after


def _branch(counter: Counter, op: Operation) -> int:
    return max((counter.block(region.block) for region in op.regions if region.blocks), default=0)


def _call(counter: Counter, op: Any) -> int:
    callee = counter.functions.get(op.callee.string_value())
    return 0 if callee is None else counter.function(callee)


def _contraction(counter: Counter, op: Any) -> int:
    """2 m n k per batch"""
    if not is_floating(op.result.type):
        return 0
    inner = counter.known(op, *(shape_of(op.lhs)[k] for k in op.numbers("lhs_contract")))
    return 2 * counter.size(op.result) * inner * (4 if isinstance(op.result.type.element_type, ComplexType) else 1)


def _convolution(counter: Counter, op: Any) -> int:
    """2 per output element and element of its window; places in the padding and between dilated elements count as places"""
    return 2 * counter.size(op.result) * counter.known(op, *shape_of(op.rhs)[:-1]) if is_floating(op.result.type) else 0


def _reads(counter: Counter, op: Operation) -> int:
    """One per element read"""
    return counter.size(op.operands[0]) if is_floating(op.operands[0].type) else 0


def _window(counter: Counter, op: Any) -> int:
    """One per output element and element of its window"""
    return counter.size(op.results[0]) * math.prod(op.numbers("window")) if is_floating(op.results[0].type) else 0


def _selected(counter: Counter, op: Any) -> int:
    """The comparisons of each window, and one addition of its source"""
    return counter.size(op.source) * (math.prod(op.numbers("window")) + 1) if is_floating(op.source.type) else 0


def _added(counter: Counter, op: Any) -> int:
    """One addition per element of the updates"""
    return counter.size(op.updates) if is_floating(op.updates.type) else 0


def _sort(counter: Counter, op: Any) -> int:
    """n log2 n comparisons of each row"""
    first = op.operands[0]
    n = counter.known(op, shape_of(first)[op.number("dim")])
    compared = counter.size(first) * max(1, math.ceil(math.log2(max(n, 2))))
    if any(region.blocks for region in op.regions):
        return counter._per_element(op, compared)
    return compared if is_floating(first.type) else 0


def _fourier(counter: Counter, op: Any) -> int:
    """5 n log2 n along the transformed dimensions"""
    value = max((op.operands[0], op.results[0]), key=counter.size)
    shape = shape_of(value)
    n = counter.known(op, *shape[len(shape) - op.number("dims") :])
    return math.ceil(5 * counter.size(value) * math.log2(max(n, 2)))


FACTORISATIONS: dict[str, float] = {
    "nd.cholesky": 1 / 3, "nd.triangular_solve": 1, "nd.lu": 2 / 3, "nd.qr": 4 / 3, "nd.eigh": 9, "nd.svd": 20,
    "lapack.potrf": 1 / 3, "lapack.trsm": 1, "lapack.getrf": 2 / 3, "lapack.qr": 4 / 3, "lapack.syevd": 9, "lapack.gesdd": 20,
}  # fmt: skip
"""Times n^2 m of the last two dimensions, n the smaller one (Golub and Van Loan, Matrix Computations)."""


def _factorisation(counter: Counter, op: Any) -> int:
    """The textbook count; of a triangular solve n^2 per right-hand side"""
    name = op.callee.data if isinstance(op, CustomCallOp) else op.name
    if name not in FACTORISATIONS:
        return 0
    value = op.operands[-1] if name in ("nd.triangular_solve", "lapack.trsm") else op.operands[0]
    *batch, m, n = (counter.known(op, size) for size in shape_of(value))
    if value is not op.operands[0]:
        order = counter.known(op, shape_of(op.operands[0])[-1])
        return math.prod(batch) * order * m * n
    return math.ceil(FACTORISATIONS[name] * math.prod(batch) * min(m, n) ** 2 * max(m, n))


def _applications(counter: Counter, op: Any) -> int:
    """How often the region of an op runs."""
    if isinstance(op, nd.ReduceWindowGeneralOp):
        return counter.size(op.results[0]) * math.prod(op.numbers("window"))
    if isinstance(op, nd.ScatterGeneralOp):
        return counter.size(op.operands[-1])
    return counter.size(op.operands[0])


def _constant(value: SSAValue) -> int | None:
    """The number that index arithmetic on constants makes of `value`."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp):
        return int(cast("Any", owner.value).value.data)
    combine = INDEX_ARITHMETIC.get(type(owner)) if isinstance(owner, Operation) else None
    if combine is None or not isinstance(owner, Operation):
        return None
    numbers = [_constant(v) for v in owner.operands]
    return None if None in numbers else combine(*numbers)


def _scalar(op: Operation) -> int:
    """One for arithmetic on a floating-point number; constants are none"""
    return 1 if op.operands and any(is_floating(v.type) for v in (*op.operands, *op.results)) and not _guards(op) else 0


def _guards(op: Operation) -> bool:
    """Whether `op` is part of a strong product but for the product: `select(x == 0 | y == 0, 0, x * y)` is one op of `nd` too"""
    if isinstance(op, arith.SelectOp):
        return _is_zero(op.lhs) and isinstance(op.rhs.owner, arith.MulfOp) and isinstance(op.cond.owner, arith.OrIOp)
    if not isinstance(op, arith.CmpfOp) or not any(map(_is_zero, op.operands)):
        return False
    ored = [use.operation for use in op.result.uses]
    return bool(ored) and all(isinstance(o, arith.OrIOp) and all(_guards(use.operation) for use in o.result.uses) for o in ored)


def _is_zero(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, arith.ConstantOp) and isinstance(owner.value, FloatAttr) and owner.value.value.data == 0


def _nest(counter: Counter, op: Any) -> int:
    """The body at every point"""
    inside = counter.block(op.body.block)
    sizes = [size if isinstance(size, int) else None for size in Nest.of(op).sizes]
    return inside * counter.known(op, *sizes) if inside else 0


INDEX_ARITHMETIC: dict[type[Operation], Callable[..., int]] = {
    arith.AddiOp: operator.add, arith.SubiOp: operator.sub, arith.MuliOp: operator.mul,
    arith.MaxSIOp: max, arith.MinSIOp: min, arith.IndexCastOp: int,
}  # fmt: skip

SCALARS = ("arith.", "math.")
"""Dialects of operations on single numbers."""

MOVES: frozenset[type[Operation]] = frozenset(
    (
        nd.ConstantOp, nd.IotaOp, nd.EmptyOp, nd.SymbolOp, nd.BindOp, nd.DimOp, nd.ReshapeOp, nd.TransposeOp, nd.BroadcastOp, nd.SliceOp,
        nd.PadOp, nd.ConcatenateOp, nd.ReverseOp, nd.GatherOp, nd.GatherGeneralOp, nd.DynamicSliceOp, nd.DynamicUpdateSliceOp,
        nd.IndexAtOp, nd.UpdateAtOp, nd.RealOp, nd.ImagOp, nd.ComplexOp, nd.BitcastConvertOp, nd.YieldOp, nd.AssertOp, nd.PrintOp,
        nd.OptimizationBarrierOp,
    )
)  # fmt: skip
"""Ops of `nd` that compute nothing."""

WEIGHTS: dict[type[Operation], int] = {nd.ClampOp: 2, nd.FmaOp: 2}
"""Elementwise ops that are more than one operation."""

RULES: dict[type[Operation], Callable[[Counter, Any], int]] = {
    scf.ForOp: _loop, scf.WhileOp: _while, scf.IfOp: _branch, scf.IndexSwitchOp: _branch, func.CallOp: _call,
    nd.DotGeneralOp: _contraction, nd.ConvGeneralOp: _convolution, nd.ReduceWindowOp: _window, nd.SelectAndScatterOp: _selected,
    nd.ScatterAddOp: _added, nd.SortOp: _sort, CustomCallOp: _factorisation,
    **dict.fromkeys((nd.ReduceSumOp, nd.ReduceProdOp, nd.ReduceMaxOp, nd.ReduceMinOp, nd.ArgmaxOp, nd.ArgminOp), _reads),
    **dict.fromkeys((nd.CumsumOp, nd.CumprodOp, nd.CummaxOp, nd.CumminOp, nd.CumlogsumexpOp), _reads),
    **dict.fromkeys((nd.FftOp, nd.IfftOp, nd.RfftOp, nd.IrfftOp), _fourier),
    **dict.fromkeys((nd.CholeskyOp, nd.TriangularSolveOp, nd.LuOp, nd.QrOp, nd.EighOp, nd.SvdOp), _factorisation),
    linalg.GenericOp: _nest,
}  # fmt: skip

__all__ = ["Counter", "flops"]
