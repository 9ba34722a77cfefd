"""`scf.parallel`: the body becomes a function over a range, the loop a call of the context's parallel-for.

What the body reads from around it travels in a closure on the caller's stack. A loop inside a parallel body, a loop with reductions, and
any loop for a target of one thread stay sequential.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from gradir.dialects.target import abi
from gradir.targets.llvm.control import check_status, gather
from gradir.targets.llvm.emitter import Buffer, Column, FunctionEmitter, Handler, Index, Value
from gradir.targets.llvm.memory import context_field
from gradir.targets.llvm.types import symbol


def parallel(e: FunctionEmitter, op: Any) -> None:
    rank = len(op.lowerBound)
    if e.in_parallel or e.module.sequential or op.initVals:
        _sequential(e, op, 0, [], list(op.initVals))
        return
    bounds = [[e.index(v) for v in group] for group in (op.lowerBound, op.upperBound, op.step)]
    trips = [_trips(e, lower, upper, step) for lower, upper, step in zip(*bounds)]
    total = e.product(trips)
    if total == 0:
        return
    if isinstance(total, int) and total == 1:
        _sequential(e, op, 0, [], [])
        return
    captured = _captured(op.body.block)
    parts = gather(e, captured)
    extra = [i for row in (*bounds, trips) for i in row if isinstance(i, str)]
    dynamic = [(t, n) for group in parts for t, n in group if n[0] == "%"] + [("i64", n) for n in extra]
    fields = list(dict.fromkeys(dynamic))
    name = e.module.fresh_name(f"{e.module.function}.parallel")
    closure = "{ " + ", ".join(["i32", *(t for t, _ in fields)]) + " }"
    slot = e.stack_slot(f"{closure}, align 64")
    e.line(f"store i32 0, ptr {slot}, align 4")
    for n, (t, value) in enumerate(fields):
        e.line(f"store {t} {value}, ptr {e.pure(f'getelementptr inbounds {closure}, ptr {slot}, i32 0, i32 {n + 1}')}, align {_align(t)}")
    grain: Any = op.attributes.get("gradir.grain")
    run = context_field(e, abi.OFFSET_PARALLEL_FOR)
    e.line(f"call void {run}(ptr %ctx, ptr {symbol(name)}, ptr {slot}, i64 {total}, i64 {grain.value.data if grain is not None else 1})")
    failing = _body(e, op, name, closure, fields, captured, bounds, trips, rank)
    if failing:
        check_status(e, e.define(f"load i32, ptr {slot}, align 4"))


def _body(
    e: FunctionEmitter,
    op: Any,
    name: str,
    closure: str,
    fields: Sequence[tuple[str, str]],
    captured: Sequence[SSAValue],
    bounds: Sequence[Sequence[Index]],
    trips: Sequence[Index],
    rank: int,
) -> bool:
    """Write the outlined functions: `name` unpacks the closure and calls `name.body`, whose pointers may be noalias. Can it fail?"""
    inner = FunctionEmitter(e.module, _record_status)
    inner.in_parallel = True
    rename = {value: f"%x{n}" for n, (_, value) in enumerate(fields)}
    roots = [v.root for v in map(e.values.__getitem__, captured) if isinstance(v, Buffer)]
    exclusive = {root for root in roots if root in e.noalias and roots.count(root) == 1}
    unaliased = {found.pointer for found in map(e.values.__getitem__, captured) if isinstance(found, Buffer) and found.root in exclusive}
    inner.noalias = {rename[p] for p in unaliased if p in rename}
    for value in captured:
        inner.values[value] = _renamed(inner, e.values[value], rename)

    def there(index: Index) -> Index:
        return rename.get(index, index) if isinstance(index, str) else index

    inner.line("br label %each")
    inner.start("each")
    at = len(inner.lines)
    inner.lines.append("")
    rest: Index = "%it"
    for d in reversed(range(rank)):
        trip = there(trips[d])
        position = rest if d == 0 else inner.pure(f"urem i64 {rest}, {trip}")
        if d:
            rest = inner.pure(f"udiv i64 {rest}, {trip}")
        induction = inner.add(inner.mul(position, there(bounds[2][d])), there(bounds[0][d]))
        inner.values[op.body.block.args[d]] = str(induction)
    before = e.module.failures
    inner.block(op.body.block)
    inner.line("%next = add nsw i64 %it, 1")
    inner.line("%more = icmp slt i64 %next, %hi")
    inner.line("br i1 %more, label %each, label %end")
    inner.lines[at] = f"  %it = phi i64 [%lo, %entry], [%next, %{inner.label}]"
    inner.start("end")
    inner.fence()
    inner.line("ret void")
    fail = e.module.failures != before
    given = ["ptr %ctx", "i64 %lo", "i64 %hi", "ptr %status"]
    given += [f"{t} {'noalias ' if rename[v] in inner.noalias else ''}{rename[v]}" for t, v in fields]
    body = symbol(name + ".body")
    e.module.add_function(f"define internal void {body}({', '.join(given)}) #0", inner)
    lines: list[str] = []
    for n, (t, v) in enumerate(fields):
        lines.append(f"  %p{n} = getelementptr inbounds {closure}, ptr %closure, i32 0, i32 {n + 1}")
        lines.append(f"  {rename[v]} = load {t}, ptr %p{n}, align {_align(t)}")
    passed = "".join(f", {t} {rename[v]}" for t, v in fields)
    header = f"define internal void {symbol(name)}(ptr %ctx, ptr %closure, i64 %lo, i64 %hi) #0"
    text = "\n".join([*lines, f"  call void {body}(ptr %ctx, i64 %lo, i64 %hi, ptr %closure{passed})", "  ret void"])
    e.module.functions.append(f"{header} {{\nentry:\n{text}\n}}\n")
    return fail


def _record_status(e: FunctionEmitter, status: str) -> None:
    """A body that fails leaves its status in the closure and ends its range; the caller looks when all are done."""
    e.line(f"store atomic i32 {status}, ptr %status monotonic, align 4")
    e.line("ret void")


def _renamed(inner: FunctionEmitter, value: Value, rename: dict[str, str]) -> Value:
    """A captured value in the body; strides that follow from sizes are computed again there, the closure has no field for them."""
    if isinstance(value, Buffer):
        sizes = tuple(rename.get(n, n) if isinstance(n, str) else n for n in value.sizes)
        strides = tuple(rename.get(n, n) if isinstance(n, str) else n for n in value.strides)
        if value.type.strides is None:
            strides = inner.contiguous(sizes)
        pointer = rename.get(value.pointer, value.pointer)
        return Buffer(pointer, sizes, strides, value.type, pointer)
    if isinstance(value, list):
        return type(value)(rename.get(n, n) for n in value)
    return rename.get(value, value)


def _captured(block: Block) -> list[SSAValue]:
    """Values defined outside `block` that its ops read, in order of first use."""
    inside: set[Block] = set()
    found: dict[SSAValue, None] = {}

    def visit(ops: Iterator[Operation]) -> None:
        for op in ops:
            for operand in op.operands:
                owner = operand.owner
                home = owner if isinstance(owner, Block) else owner.parent
                if home not in inside:
                    found[operand] = None
            for region in op.regions:
                for inner in region.blocks:
                    inside.add(inner)
                    visit(iter(inner.ops))

    inside.add(block)
    visit(iter(block.ops))
    return list(found)


def _trips(e: FunctionEmitter, lower: Index, upper: Index, step: Index) -> Index:
    """max(0, ceil((upper - lower) / step))."""
    if isinstance(lower, int) and isinstance(upper, int) and isinstance(step, int):
        return max(0, -(-(upper - lower) // step))
    distance = e.sub(upper, lower)
    rounded = e.add(distance, e.sub(step, 1))
    trips = rounded if step == 1 else e.pure(f"sdiv i64 {rounded}, {step}")
    return e.call("i64", "llvm.smax.i64", [("i64", str(trips)), ("i64", "0")])


def _sequential(e: FunctionEmitter, op: Any, depth: int, induction: list[str], carried: list[SSAValue]) -> None:
    """Nested loops on this thread; `scf.reduce` combines its operands with the carried values, in order."""
    block = op.body.block
    current = [_copy_of(e, v) for v in carried]
    finals = _nest(e, op, depth, block, current)
    for result, value in zip(op.results, finals):
        e.values[result] = value


def _nest(e: FunctionEmitter, op: Any, depth: int, block: Block, current: list[Value]) -> list[Value]:
    if depth == len(op.lowerBound):
        end = e.block(block)
        assert end is not None
        out: list[Value] = []
        for value, operand, region in zip(current, end.operands, end.regions):
            first, second = region.block.args
            e.values[first], e.values[second] = value, e.values[operand]
            combined = e.block(region.block)
            assert combined is not None
            out.append(e.values[combined.operands[0]])
        return out
    lower, upper, step = (str(e.index(group[depth])) for group in (op.lowerBound, op.upperBound, op.step))
    k = e.fresh()
    before = e.label
    e.line(f"br i1 {e.pure(f'icmp slt i64 {lower}, {upper}')}, label %seq{k}, label %seqdone{k}")
    mark = e.enter()
    e.start(f"seq{k}")
    at = len(e.lines)
    e.lines.append("")
    e.values[block.args[depth]] = f"%i{k}"
    types = [e.part_types(v.type) for v in op.initVals]
    names: list[list[str]] = [[f"%q{k}.{i}.{j}" for j in range(len(t))] for i, t in enumerate(types)]
    inside = [e.assemble(v.type, n) for v, n in zip(op.initVals, names)]
    finals = _nest(e, op, depth + 1, block, inside)
    last = e.label
    e.line(f"%n{k} = add nsw i64 %i{k}, {step}")
    e.line(f"br i1 {e.define(f'icmp slt i64 %n{k}, {upper}')}, label %seq{k}, label %seqdone{k}")
    e.leave(mark)
    e.start(f"seqdone{k}")
    phis = [f"  %i{k} = phi i64 [{lower}, %{before}], [%n{k}, %{last}]"]
    out: list[Value] = []
    for v, types_, name, start, final in zip(op.initVals, types, names, current, finals):
        starts, ends = _listed(start), _listed(final)
        phis += [f"  {n} = phi {t} [{a}, %{before}], [{b}, %{last}]" for t, n, a, b in zip(types_, name, starts, ends)]
        out.append(e.assemble(v.type, [e.define(f"phi {t} [{a}, %{before}], [{b}, %{last}]") for t, a, b in zip(types_, starts, ends)]))
    e.lines[at] = "\n".join(phis)
    return out


def _listed(value: Value) -> list[str]:
    return [value] if isinstance(value, str) else list(value) if isinstance(value, list) else [value.pointer]


def _copy_of(e: FunctionEmitter, value: SSAValue) -> Value:
    found = e.values[value]
    return e.text(value) if isinstance(found, Column) else found


def _align(t: str) -> int:
    """Alignment of a closure field: LLVM's natural one for scalars and pointers, that of the element for vectors in a packed place."""
    return {"ptr": 8, "i64": 8, "double": 8, "float": 4, "i32": 4, "i16": 2, "i8": 1, "i1": 1}.get(t, 1)


HANDLERS: dict[str, Handler] = {"scf.parallel": parallel}
