"""The evaluator's core: values of SSA names, blocks in program order, calls; one numpy function per kind of op.

The functions live in one module per dialect and register themselves with `evaluates`; a dialect's module loads when an op of it is first
met. A value is a numpy array or scalar (tensors, vectors, numbers), a `Partial` (a tensor with undefined elements) or a `View` (memref).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from importlib import import_module
from typing import Any, NoReturn, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from gradir.dialects.upstream.func import FuncOp
from gradir.dialects.upstream.named import generic_form
from gradir.errors import GradirError
from gradir.ir.passes import error_at

Value = Any
"""A numpy array or scalar, a `Partial` or a `View`."""

Implementation = Callable[..., Any]
Step: TypeAlias = "tuple[Operation, Implementation, tuple[SSAValue, ...], tuple[SSAValue, ...]]"
"""`f(machine, op, *operand values)` -> None, one value, or a tuple of values."""

Watcher = Callable[[Operation, Sequence[Value], Sequence[Value]], Sequence[Value]]
"""`w(op, operands, results)` -> results: sees every op after it ran, and may change its results (see `noise`)."""

Size: TypeAlias = "tuple[int, int, int]"
Launcher = Callable[[Operation, Size, Size, Sequence[Value], int], None]
"""`launch(kernel, grid, block, operands, bytes of dynamic workgroup memory)`: runs a `gpu.func`."""

_IMPLEMENTATIONS: dict[str, Implementation] = {}

FAMILIES: dict[str, str] = {
    "arith": "gradir.reference.scalars",
    "math": "gradir.reference.mathematics",
    "func": "gradir.reference.control",
    "scf": "gradir.reference.control",
    "cf": "gradir.reference.control",
    "nd": "gradir.reference.tensors",
    "tensor": "gradir.reference.slices",
    "linalg": "gradir.reference.structured",
    "memref": "gradir.reference.memory",
    "bufferization": "gradir.reference.memory",
    "vector": "gradir.reference.vectors",
    "gpu": "gradir.reference.device",
    "nvgpu": "gradir.reference.tensor_cores",
}
"""Dialect -> the module whose import registers the meanings of its ops; a plugin adds its own."""

TERMINATORS = {"func.return", "scf.yield", "scf.condition", "scf.reduce", "scf.reduce.return", "linalg.yield", "tensor.yield", "gpu.return"}


def evaluates(*kinds: type[Operation]) -> Callable[[Implementation], Implementation]:
    """Register the decorated function as the meaning of ops of these classes."""

    def register(implementation: Implementation) -> Implementation:
        for kind in kinds:
            _IMPLEMENTATIONS[kind.name] = implementation
        return implementation

    return register


def implementation_of(name: str) -> Implementation | None:
    """The meaning of ops called `name`, loading the dialect's module when needed."""
    dialect = name.partition(".")[0]
    if name not in _IMPLEMENTATIONS and dialect in FAMILIES:
        import_module(FAMILIES[dialect])
    return _IMPLEMENTATIONS.get(name)


class Machine:
    """One run of a module. `rng` orders parallel loops; `watch` sees every op after it ran."""

    MAX_ITERATIONS = 10_000_000

    def __init__(self, module: ModuleOp, *, seed: int = 0, watch: Watcher | None = None) -> None:
        self.module = module
        self.rng = np.random.default_rng(seed)
        self.watch = watch
        self.values: dict[SSAValue, Value] = {}
        self.sizes: dict[str, int] = {}  # named sizes of the current function
        self.globals: dict[str, Value] = {}
        self.grids: list[Any] = []  # coordinates of the running `linalg.generic`
        self.race: Any = None  # the `Race` of the running `scf.parallel`, see `buffers`
        self.launcher: Launcher | None = None  # who runs kernels of a GPU in place of the evaluator
        self._binding: set[Block] = set()  # blocks of regions that name sizes: each run names its own
        self._steps: dict[Block, list[Step]] = {}
        self._symbols: dict[str, Operation] = {}
        for op in module.body.block.ops:
            if isinstance(name := op.properties.get("sym_name"), StringAttr):
                self._symbols[name.data] = op

    def function(self, name: str) -> FuncOp | None:
        """The function called `name`."""
        found = self._symbols.get(name)
        return found if isinstance(found, FuncOp) else None

    def symbol(self, op: Operation, reference: SymbolRefAttr) -> Operation:
        """What `reference` names; `op` is who asks."""
        name = reference.string_value()
        if name not in self._symbols:
            self.fail(op, "OP100", f"no symbol @{name} in the module")
        return self._symbols[name]

    def fail(self, op: Operation, code: str, message: str, *, expected: str = "", found: str = "", hint: str = "") -> NoReturn:
        """Stop: the program has no meaning at `op`."""
        raise error_at(op, message, part="operator", code=code, expected=expected, found=found, hint=hint)

    def invoke(self, function: FuncOp, arguments: Sequence[Value], sizes: dict[str, int]) -> list[Value]:
        """Run `function` on values of its arguments, with `sizes` for the names in their types; its results."""
        outer, outer_sizes = self.values, self.sizes
        self.values, self.sizes = {}, sizes
        try:
            self.values.update(zip(function.body.block.args, arguments, strict=True))
            return self.run(function.body.block)
        finally:
            self.values, self.sizes = outer, outer_sizes

    def enter(self, region: Region, arguments: Sequence[Value] = ()) -> list[Value]:
        """Run the single block of `region`; the values that its terminator carries. Sizes that it binds are its own."""
        block, known = region.block, len(self.sizes)
        self.values.update(zip(block.args, arguments, strict=True))
        carried = self.run(block)
        while len(self.sizes) > known:
            self.sizes.popitem()
        return carried

    def run(self, block: Block, skip: Container[Operation] = ()) -> list[Value]:
        """Run the ops of `block`, whose arguments have values; the values that its terminator carries.

        Ops in `skip` are left out; the terminator then carries nothing.
        """
        steps = self._steps.get(block)
        if steps is None:
            steps = self._steps[block] = [self._step(op) for op in block.ops]
            if any(op.name == "nd.bind" for op in block.ops) and not isinstance(block.parent_op(), FuncOp):
                self._binding.add(block)
        if block in self._binding:
            outer_sizes, self.sizes = self.sizes, dict(self.sizes)
            try:
                return self._run(steps, skip)
            finally:
                self.sizes = outer_sizes
        return self._run(steps, skip)

    def _run(self, steps: Sequence[Step], skip: Container[Operation]) -> list[Value]:
        values = self.values
        carried: list[Value] = []
        for op, implementation, operands, results in steps:
            if skip and (op in skip or implementation is _carry):
                continue
            try:
                taken = [values[operand] for operand in operands]
            except KeyError:
                self.fail(op, "OP100", "an operand has no value here: its definition does not dominate this use")
            given = implementation(self, op, *taken)
            if implementation is _carry:
                carried = given
                continue
            given = () if given is None else given if type(given) is tuple else (given,)
            if self.watch is not None:
                given = self.watch(op, taken, given)
            for result, value in zip(results, given, strict=True):
                values[result] = value
        return carried

    def _step(self, op: Operation) -> Step:
        implementation = _carry if op.name in TERMINATORS else implementation_of(op.name)
        if implementation is None:
            unknown = generic_form(op, "register one with @gradir.reference.evaluates")
            hint = "run `differentiate` first" if op.name.startswith("ad.") else unknown
            self.fail(op, "OP100", "the reference evaluator has no meaning for this op", hint=hint)
        return op, implementation, tuple(op.operands), tuple(op.results)


def _carry(_machine: Machine, _op: Operation, *values: Value) -> list[Value]:
    return list(values)


__all__ = ["FAMILIES", "GradirError", "Implementation", "Machine", "Value", "Watcher", "evaluates", "implementation_of"]
