"""A level-4 module as LLVM IR text: functions, their packed entries, globals, the table of kernels from other objects.

Every function takes the context first and returns a status. A memref argument is its pointer, then its dynamic sizes, then (strided
layouts) its dynamic strides. `@f.packed(ptr ctx, ptr slots)` reads them from 64-bit slots: what the runtime calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, MemRefType, ModuleOp, i64
from xdsl.ir import Attribute, Operation

from gradir.dialects.target import CpuTargetAttr, CudaTargetAttr, TargetAttr, target_of
from gradir.dialects.target.cuda_facts import architecture
from gradir.dialects.upstream.func import FuncOp
from gradir.ir.checks import CHECK
from gradir.ir.passes import error_at, location_text
from gradir.ir.structure import is_public
from gradir.targets.llvm import arithmetic, control, conversions, joined_products, memory, parallel, reductions, transfers, vectors
from gradir.targets.llvm.constants import global_text
from gradir.targets.llvm.emitter import FunctionEmitter, Handler
from gradir.targets.llvm.types import BufferType, ValueType, buffer_type, symbol, value_type

KERNEL_TABLE = "gradir.kernels"

HANDLERS: dict[str, Handler] = {
    **arithmetic.HANDLERS,
    **conversions.HANDLERS,
    **memory.HANDLERS,
    **control.HANDLERS,
    **parallel.HANDLERS,
    **vectors.HANDLERS,
    **reductions.HANDLERS,
    **joined_products.HANDLERS,
    **transfers.HANDLERS,
}


@dataclass(frozen=True)
class Assertion:
    """One `cf.assert` (or another op that may fail): the id that the error slot gets, its message, its place in the source."""

    op_id: int
    message: str
    location: str
    op: str = "cf.assert"


@dataclass
class Translation:
    """LLVM IR text of a module, the entries that it exports, and what its op ids mean."""

    text: str
    entries: list[str] = field(default_factory=list[str])
    assertions: list[Assertion] = field(default_factory=list[Assertion])
    libraries: list[FuncOp] = field(default_factory=list[FuncOp])
    """Declared kernels that are called back, by id."""


class ModuleEmitter:
    """What the functions of one module share."""

    handlers = HANDLERS

    def __init__(self, module: Operation, target: TargetAttr, external: Sequence[str], exported: Iterable[str], first_op_id: int) -> None:
        self.target = target
        cpu = isinstance(target, CpuTargetAttr)
        self.has_fma = not cpu or target.has("fma")
        self.has_f16c = not cpu or target.has("f16c")
        self.has_bf16 = isinstance(target, CudaTargetAttr) and architecture(target.arch).asynchronous
        """An instruction rounds f32 to bf16: from sm_80 on, like asynchronous copies."""
        self.sequential = not cpu or target.threads == 1
        self.is_x86 = isinstance(target, CpuTargetAttr) and (not target.triple or target.triple.startswith("x86_64"))
        self.external = {name: position for position, name in enumerate(external)}
        self.exported = frozenset(exported)
        self.functions: list[str] = []
        self.assertions: list[Assertion] = []
        self.libraries: dict[FuncOp, int] = {}
        self.first_op_id = first_op_id
        self.failures = 0  # grows whenever something that can fail is written
        self.function = ""
        self._types: dict[int, tuple[Attribute, Any]] = {}
        self._names: dict[str, int] = {}
        self._fails: dict[str, bool] = {}
        top = module.regions[0].block.ops
        self.definitions = {f.sym_name.data: f for f in top if isinstance(f, FuncOp)}

    # Types, interned per module: hashing an attribute costs more than writing an op

    def value_type(self, t: Attribute) -> ValueType:
        found = self._types.get(id(t))
        if found is None:
            found = self._types[id(t)] = (t, value_type(t))
        return found[1]

    def buffer_type(self, t: Attribute) -> BufferType:
        found = self._types.get(id(t))
        if found is None:
            found = self._types[id(t)] = (t, buffer_type(cast(MemRefType, t), self.default_pointer))
        return found[1]

    default_pointer = "ptr"

    # Calls and failures

    def may_fail(self, name: str) -> bool:
        """Can `@name` return a status other than 0? Of a function that is not written yet nothing is known."""
        if self._fails.get(name, True):
            self.failures += 1
            return True
        return False

    def callee(self, op: Operation, name: str, e: FunctionEmitter) -> str:
        """What to call: the function of this object, or the loader's pointer to that of another one."""
        position = self.external.get(name)
        if position is not None:
            at = e.pure(f"getelementptr inbounds [{len(self.external)} x ptr], ptr {symbol(KERNEL_TABLE)}, i64 0, i64 {position}")
            return e.pure(f"load ptr, ptr {at}, align 8")
        if name not in self.definitions or not self.definitions[name].body.blocks:
            raise error_at(
                op,
                f"@{name} has no body here",
                part="operator",
                code="OP040",
                expected="a function of the module or an external kernel",
                found=f"@{name}",
            )
        return symbol(name)

    def library_id(self, function: FuncOp) -> int:
        """The number of a declared kernel for the runtime."""
        return self.libraries.setdefault(function, len(self.libraries))

    def op_id(self, op: Operation, message: str, kind: str = "cf.assert") -> int:
        number = self.first_op_id + len(self.assertions)
        self.assertions.append(Assertion(number, message, location_text(op.location), kind))
        self.failures += 1
        return number

    def fresh_name(self, base: str) -> str:
        n = self._names[base] = self._names.get(base, -1) + 1
        return f"{base}{n}"

    # Functions

    def add_function(self, header: str, e: FunctionEmitter) -> None:
        self.functions.append("\n".join([header + " {", "entry:", *e.stack, *e.lines, "}", ""]))

    def emit_function(self, f: FuncOp) -> None:
        self.function = name = f.sym_name.data
        public = is_public(f)
        results = list(f.function_type.outputs.data)
        e = FunctionEmitter(self)
        failures = self.failures
        returned = control.result_type(e, results)
        if results:
            e.failure = _failure_with_results(returned)
        block = f.body.block
        arguments = ["ptr %ctx"]
        for position, argument in enumerate(block.args):
            parts = e.part_types(argument.type)
            names = [f"%a{position}"] + [f"%a{position}.{k}" for k in range(1, len(parts))]
            attributes = _argument_attributes(f, position) if isinstance(argument.type, MemRefType) else ""
            if "noalias" in attributes:
                e.noalias.add(names[0])
            arguments += [f"{t} {attributes if k == 0 else ''}{n}" for k, (t, n) in enumerate(zip(parts, names))]
            e.values[argument] = e.assemble(argument.type, names)
        end = e.block(block)
        assert end is not None, name
        e.fence()
        if results:
            row = e.define(f"insertvalue {returned} poison, i32 0, 0")
            for k, (t, n) in enumerate([p for v in end.operands for p in e.parts(v)]):
                row = e.define(f"insertvalue {returned} {row}, {t} {n}, {k + 1}")
            e.line(f"ret {returned} {row}")
        else:
            e.line("ret i32 0")
        linkage = "" if public or name in self.exported else "internal "
        self.add_function(f"define {linkage}{returned} {symbol(name)}({', '.join(arguments)}) #0", e)
        self._fails[name] = self.failures != failures
        if public and not results:
            self.emit_packed(f)

    def emit_packed(self, f: FuncOp) -> None:
        """`@f.packed(ptr ctx, ptr slots)`: one slot per pointer, per dynamic size after its pointer, per scalar."""
        e = FunctionEmitter(self)
        passed: list[str] = []
        slot = 0
        for t in f.function_type.inputs.data:
            for part in e.part_types(t):
                at = e.element_pointer("%args", _SLOTS, 0, slot)
                slot += 1
                loaded = e.define(f"load {'i8' if part == 'i1' else part}, ptr {at}, align 8")
                passed.append(f"{part} {e.define(f'trunc i8 {loaded} to i1') if part == 'i1' else loaded}")
        status = e.define(f"call i32 {symbol(f.sym_name.data)}({', '.join(['ptr %ctx', *passed])})")
        e.line(f"ret i32 {status}")
        self.add_function(f"define i32 {symbol(f.sym_name.data + '.packed')}(ptr %ctx, ptr %args) #0", e)

    def attributes(self) -> str:
        """Attribute group of all functions: keep 512-bit vectors whole where the registers have that width."""
        wide = (
            ' "min-legal-vector-width"="512" "prefer-vector-width"="512"'
            if isinstance(self.target, CpuTargetAttr) and self.target.vector >= 16
            else ""
        )
        return f"attributes #0 = {{ nounwind{wide} }}"


PROFILES = '!0 = !{!"branch_weights", i32 1, i32 1000000}\n!1 = !{!"branch_weights", i32 1000000, i32 1}\n!2 = !{i32 1}'
"""Metadata that branches refer to: hardly ever, nearly always."""

_SLOTS = BufferType(value_type(i64), (), None, "ptr")


def _failure_with_results(returned: str) -> Callable[[FunctionEmitter, str], None]:
    """How a function with results ends with a status: the results are poison."""

    def fail(e: FunctionEmitter, status: str) -> None:
        e.line(f"ret {returned} {e.define(f'insertvalue {returned} poison, i32 {status}, 0')}")

    return fail


def _argument_attributes(f: FuncOp, position: int) -> str:
    """`noalias` for a kernel operand that no call site overlaps with another one, `readonly` where the kernel only reads.

    `bufferize` writes `gradir.access` on every kernel operand and `gradir.alias` where there may be overlap; a function without them
    promises nothing.
    """
    if f.arg_attrs is None or position >= len(f.arg_attrs.data):
        return ""
    return operand_attributes(f.arg_attrs.data[position].data)


def operand_attributes(attributes: Mapping[str, Attribute]) -> str:
    """LLVM's words for one operand of a kernel, from its attributes."""
    alias, access = attributes.get("gradir.alias"), attributes.get("gradir.access")
    overlaps = bool(alias.data) if isinstance(alias, ArrayAttr) else len(alias) > 0 if isinstance(alias, DenseArrayBase) else False
    free = access is not None and not overlaps
    readonly = access is not None and str(getattr(access, "data", "")) == "read"
    return "".join(word + " " for word, there in (("noalias", free), ("readonly", readonly)) if there)


def translate(
    module: ModuleOp,
    *,
    external_kernels: Sequence[str] = (),
    exported: Iterable[str] = (),
    target: TargetAttr | None = None,
    first_op_id: int = 0,
) -> Translation:
    """The whole translation of a level-4 module.

    `external_kernels`: private functions that live in other objects, called through `@gradir.kernels` in this order. `exported`: private
    functions that other objects call. Public functions get a packed entry. `GradirError` OP040 for an op that is not of level 4.
    """
    e = ModuleEmitter(module, target or target_of(module), external_kernels, exported, first_op_id)
    globals_ = [global_text(op) for op in module.body.block.ops if op.name == "memref.global"]
    entries: list[str] = []
    for f in module.body.block.ops:
        if isinstance(f, FuncOp) and f.body.blocks and f.sym_name.data not in e.external and CHECK not in f.attributes:
            e.emit_function(f)
            if is_public(f):
                entries.append(f.sym_name.data)
    if external_kernels:
        globals_.insert(0, f"{symbol(KERNEL_TABLE)} = global [{len(external_kernels)} x ptr] zeroinitializer, align 8")
    text = "\n".join([*globals_, *e.functions, e.attributes(), PROFILES, ""])
    return Translation(text, entries, e.assertions, list(e.libraries))


def emit_module(
    module: ModuleOp, *, external_kernels: Sequence[str] = (), exported: Iterable[str] = (), target: TargetAttr | None = None
) -> str:
    """LLVM IR text of a level-4 module: see `translate`."""
    return translate(module, external_kernels=external_kernels, exported=exported, target=target).text
