"""`scf` loops and branches as basic blocks, calls with status, assertions.

Loops are do-while with a zero-trip guard where the bounds are not constants: what a back end without loop rotation wants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.dialects.target import abi
from gradir.ir.passes import error_at
from gradir.targets.llvm.emitter import Buffer, FunctionEmitter, Handler, Value
from gradir.targets.llvm.library import call_library, is_library
from gradir.targets.llvm.memory import context_field

Parts = list[tuple[str, str]]


def gather(e: FunctionEmitter, values: Sequence[SSAValue]) -> list[Parts]:
    return [e.parts(v) for v in values]


def bind(e: FunctionEmitter, targets: Sequence[SSAValue], names: Sequence[Sequence[str]], like: Sequence[Value | None]) -> None:
    """Give `targets` the values with the part names `names`; a buffer keeps the root of the one it starts as."""
    for target, parts, first in zip(targets, names, like):
        e.values[target] = e.assemble(target.type, parts, first.root if isinstance(first, Buffer) else "")


def for_(e: FunctionEmitter, op: Any) -> None:
    lower, upper, step = (e.text(v) for v in op.operands[:3])
    inits = list(op.operands[3:])
    t = e.type_of(op.operands[0]).text
    unsigned = "unsignedCmp" in op.properties or "unsignedCmp" in op.attributes
    less = "ult" if unsigned else "slt"
    body: Block = op.body.block
    starts = gather(e, inits)
    initial = [e.values[v] for v in inits]
    constant = "%" not in lower + upper
    if constant and int(lower) >= int(upper):
        for result, value in zip(op.results, initial):
            e.values[result] = value
        return
    single = constant and step[0] != "%" and int(lower) + int(step) >= int(upper)
    if single:  # one trip: no loop
        e.values[body.args[0]] = lower
        bind(e, body.args[1:], [[n for _, n in p] for p in starts], initial)
        end = e.block(body)
        for result, value in zip(op.results, end.operands if end is not None else ()):
            e.values[result] = e.values[value]
        return
    k = e.fresh()
    before = e.label
    if constant:
        e.line(f"br label %for{k}")
    else:
        e.line(f"br i1 {e.pure(f'icmp {less} {t} {lower}, {upper}')}, label %for{k}, label %done{k}")
    mark = e.enter()
    e.start(f"for{k}")
    at = len(e.lines)
    e.lines.append("")
    names = [[f"%p{k}.{i}.{j}" for j in range(len(p))] for i, p in enumerate(starts)]
    e.values[body.args[0]] = f"%i{k}"
    bind(e, body.args[1:], names, initial)
    end = e.block(body)
    finals = gather(e, end.operands) if end is not None else []
    e.line(f"%n{k} = add nsw {t} %i{k}, {step}")
    last = e.label
    e.line(f"br i1 {e.define(f'icmp {less} {t} %n{k}, {upper}')}, label %for{k}, label %done{k}")
    e.leave(mark)
    e.start(f"done{k}")
    phis = [f"  %i{k} = phi {t} [{lower}, %{before}], [%n{k}, %{last}]"]
    for start, name, final in zip(starts, names, finals):
        phis += [f"  {n} = phi {s[0]} [{s[1]}, %{before}], [{f[1]}, %{last}]" for s, n, f in zip(start, name, final)]
    e.lines[at] = "\n".join(phis)
    outs: list[list[str]] = []  # all phis of a block come first: what a memref's strides are computed from them follows
    for start, final in zip(starts, finals):
        if constant:
            outs.append([name for _, name in final])
        else:
            outs.append(
                [e.define(f"phi {s[0]} [{s[1]}, %{before}], [{f[1]}, %{last}]") if s[1] != f[1] else s[1] for s, f in zip(start, final)]
            )
    for result, out, first in zip(op.results, outs, initial):
        e.values[result] = e.assemble(result.type, out, first.root if isinstance(first, Buffer) else "")


def if_(e: FunctionEmitter, op: Any) -> None:
    condition = e.text(op.operands[0])
    k = e.fresh()
    has_else = bool(op.false_region.blocks)
    e.line(f"br i1 {condition}, label %then{k}, label %{'else' if has_else else 'join'}{k}")
    branches = [("then", op.true_region)] + ([("else", op.false_region)] if has_else else [])
    _join(e, op, k, branches)


def index_switch(e: FunctionEmitter, op: Any) -> None:
    k = e.fresh()
    cases = [int(c) for c in op.cases.get_values()]
    table = " ".join(f"i64 {c}, label %case{k}.{n}" for n, c in enumerate(cases))
    e.line(f"switch i64 {e.text(op.operands[0])}, label %default{k} [{table}]")
    branches = [(f"case{k}.{n}", region) for n, region in enumerate(op.case_regions)] + [(f"default{k}", op.default_region)]
    _join(e, op, k, branches, numbered=True)


def _join(e: FunctionEmitter, op: Operation, k: int, branches: Sequence[tuple[str, Any]], numbered: bool = False) -> None:
    """Write the branches, each a region, and the phis of what they yield."""
    ends: list[tuple[str, list[Parts], list[Value]]] = []
    for label, region in branches:
        mark = e.enter()
        e.start(label if numbered else f"{label}{k}")
        end = e.block(region.block)
        operands = end.operands if end is not None else ()
        ends.append((e.label, gather(e, operands), [e.values[v] for v in operands]))
        e.line(f"br label %join{k}")
        e.leave(mark)
    e.start(f"join{k}")
    outs: list[list[str]] = []
    for position in range(len(op.results)):
        columns = [(label, parts[position]) for label, parts, _ in ends]
        out: list[str] = []
        for j, (t, name) in enumerate(columns[0][1]):
            incoming = ", ".join(f"[{parts[j][1]}, %{label}]" for label, parts in columns)
            same = all(parts[j][1] == name and name[0] not in "%" for _, parts in columns)
            out.append(name if same else e.define(f"phi {t} {incoming}"))
        outs.append(out)
    for position, (result, out) in enumerate(zip(op.results, outs)):
        roots = {held.root for _, _, v in ends if isinstance(held := v[position], Buffer)}
        e.values[result] = e.assemble(result.type, out, roots.pop() if len(roots) == 1 else "")


def while_(e: FunctionEmitter, op: Any) -> None:
    """before: test and what to pass on; after: the body. Results are what the last test passed on."""
    before_block, after_block = op.before_region.block, op.after_region.block
    starts = gather(e, op.operands)
    initial = [e.values[v] for v in op.operands]
    k = e.fresh()
    entry = e.label
    e.line(f"br label %while{k}")
    mark = e.enter()
    e.start(f"while{k}")
    at = len(e.lines)
    e.lines.append("")
    names = [[f"%w{k}.{i}.{j}" for j in range(len(p))] for i, p in enumerate(starts)]
    bind(e, before_block.args, names, initial)
    condition = e.block(before_block)
    assert condition is not None
    passed = gather(e, condition.operands[1:])
    handed = [e.values[v] for v in condition.operands[1:]]
    e.line(f"br i1 {e.text(condition.operands[0])}, label %do{k}, label %done{k}")
    inner = e.enter()
    e.start(f"do{k}")
    bind(e, after_block.args, [[n for _, n in p] for p in passed], handed)
    end = e.block(after_block)
    finals = gather(e, end.operands) if end is not None else []
    last = e.label
    e.line(f"br label %while{k}")
    e.leave(inner)
    e.leave(mark)
    e.start(f"done{k}")
    phis: list[str] = []
    for start, name, final in zip(starts, names, finals):
        phis += [f"  {n} = phi {s[0]} [{s[1]}, %{entry}], [{f[1]}, %{last}]" for s, n, f in zip(start, name, final)]
    e.lines[at] = "\n".join(phis)
    bind(e, op.results, [[n for _, n in p] for p in passed], handed)


def execute_region(e: FunctionEmitter, op: Any) -> None:
    end = e.block(op.regions[0].block)
    for result, value in zip(op.results, end.operands if end is not None else ()):
        e.values[result] = e.values[value]


def call(e: FunctionEmitter, op: Any) -> None:
    """A direct call, one through the table of kernels, or a callback; a status other than 0 ends this function too."""
    name = op.callee.root_reference.data
    declared = e.module.definitions.get(name)
    if declared is not None and is_library(declared):
        call_library(e, op, declared)
        return
    arguments = "".join(f", {t} {v}" for operand in op.operands for t, v in e.parts(operand))
    results = [part for r in op.results for part in e.part_types(r.type)]
    if any(isinstance(r.type, MemRefType) for r in op.results):
        raise error_at(
            op,
            "a function that returns a memref",
            part="operator",
            code="OP040",
            hint="results are destinations at level 4: run `bufferize`",
        )
    target = e.module.callee(op, name, e)
    returned = "i32" if not results else "{ " + ", ".join(["i32", *results]) + " }"
    got = e.define(f"call {returned} {target}(ptr %ctx{arguments})")
    status = got if not results else e.define(f"extractvalue {returned} {got}, 0")
    if e.module.may_fail(name):
        check_status(e, status)
    names = iter([e.define(f"extractvalue {returned} {got}, {n + 1}") for n in range(len(results))])
    for result in op.results:
        e.values[result] = e.assemble(result.type, [next(names) for _ in e.part_types(result.type)])


def check_status(e: FunctionEmitter, status: str) -> None:
    """Return `status` unless it is 0."""
    k = e.fresh()
    e.line(f"br i1 {e.define(f'icmp eq i32 {status}, 0')}, label %ok{k}, label %bad{k}, !prof !1")
    e.start(f"bad{k}")
    e.fail(status)
    e.start(f"ok{k}")


def assert_(e: FunctionEmitter, op: Any) -> None:
    """Fill the error slot {code, op id} of the context and leave with status 1."""
    message = op.properties["msg"].data
    number = e.module.op_id(op, message)
    k = e.fresh()
    e.line(f"br i1 {e.text(op.operands[0])}, label %ok{k}, label %bad{k}, !prof !1")
    mark = e.enter()
    e.start(f"bad{k}")
    slot = context_field(e, abi.OFFSET_ERROR)
    e.line(f"store i64 {abi.STATUS_ASSERTION}, ptr {slot}, align 8")
    e.line(f"store i64 {number}, ptr {e.pure(f'getelementptr inbounds i8, ptr {slot}, i64 8')}, align 8")
    e.fail(str(abi.STATUS_ASSERTION))
    e.leave(mark)
    e.start(f"ok{k}")


def result_type(e: FunctionEmitter, results: Sequence[Attribute]) -> str:
    """What a function of these results returns: its status, then the results."""
    parts = [p for r in results for p in e.part_types(r)]
    return "i32" if not parts else "{ " + ", ".join(["i32", *parts]) + " }"


HANDLERS: dict[str, Handler] = {
    "scf.for": for_,
    "scf.if": if_,
    "scf.index_switch": index_switch,
    "scf.while": while_,
    "scf.execute_region": execute_region,
    "func.call": call,
    "cf.assert": assert_,
}
