"""Modules that came as IR, from StableHLO, JAX or `.mlir` text, as Python objects: `module["f"](*arrays)`.

A `Program` is the module itself, so passes and tools take it as any other. Its functions compile themselves when they are called; called
while a Python function is traced they become a call in that program, so `grad`, `value_and_grad`, `vjp` and `jit` take them as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr, TensorType
from xdsl.ir import Attribute, Operation

from gradir.dialects.types import element_of, numpy_dtype
from gradir.dialects.upstream.func import CallOp, FuncOp
from gradir.driver.compile import compile_module
from gradir.driver.evaluate import evaluate_as_it_is, evaluate_level1
from gradir.driver.residuals import ResidualReport, residual_report
from gradir.errors import GradirError
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.operands import as_array
from gradir.frontends.python.trace import ModuleTrace, current, eager_mode, python_location, ssa, tracing, user_error
from gradir.ir.structure import public_functions
from gradir.ir.text import parse_module

if TYPE_CHECKING:
    from gradir.runtime.module import Module

EVALUATED = "reference"
"""The target whose programs run in the reference evaluator."""


class Program(ModuleOp):
    """A module whose functions can be taken by name: `program["main"](*arrays)`, `program.functions`."""

    @classmethod
    def of(cls, module: ModuleOp) -> Self:
        """The module as a program; its body moves."""
        if isinstance(module, cls):
            return module
        made = cls.create(
            properties=module.properties,
            attributes=module.attributes,
            regions=[module.detach_region(module.body)],
            location=module.location,
        )
        assert isinstance(made, cls)
        return made

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the public functions."""
        return tuple(function.sym_name.data for function in public_functions(self))

    def residual_report(self) -> ResidualReport:
        """What each derivative in the module keeps for its backward part: values, bytes, where and why. `print` shows a table."""
        return residual_report(self)

    def __getitem__(self, name: str) -> ProgramFunction:
        function = _functions(self).get(name.removeprefix("@"))
        if function is None or not function.body.blocks:
            raise GradirError(
                f"the program has no function @{name.removeprefix('@')}",
                part="graph",
                code="GR052",
                expected=", ".join(f"@{found}" for found in _functions(self)) or "a func.func",
                found=name,
            )
        return ProgramFunction(self, function)


class ProgramFunction:
    """A function of a program. `f(*arrays)`: an array, or a tuple of arrays when it has several (or no) results.

    Inside a function that is traced (`jit`, `grad`, ..) it takes traced arrays and becomes a call; under `eager` it is evaluated.
    """

    def __init__(self, program: Program, function: FuncOp) -> None:
        self.program, self.function = program, function
        self.__name__ = self.name = function.sym_name.data
        self.__doc__ = f"@{self.name} of a module"
        self._compiled: Any = None

    @property
    def inputs(self) -> tuple[Attribute, ...]:
        """Types of the arguments."""
        return tuple(self.function.function_type.inputs)

    @property
    def outputs(self) -> tuple[Attribute, ...]:
        """Types of the results."""
        return tuple(self.function.function_type.outputs)

    @property
    def __signature__(self) -> inspect.Signature:
        names = [argument.name_hint or f"arg{k}" for k, argument in enumerate(self.function.body.block.args)]
        unique = [name if name.isidentifier() and names.count(name) == 1 else f"arg{k}" for k, name in enumerate(names)]
        return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in unique])

    def __repr__(self) -> str:
        return f"<gradir function @{self.name}: ({', '.join(map(str, self.inputs))}) -> ({', '.join(map(str, self.outputs))})>"

    def __call__(self, *arrays: Any) -> Any:
        if tracing():
            return self._pack(self._call(self._arguments(arrays)))
        if eager_mode():
            leaves = self._arguments(arrays)
            values = evaluate_as_it_is(self.program, self.name, [leaf.concrete for leaf in leaves])
            return self._pack([_concrete(kind, value) for kind, value in zip(self.outputs, values)])
        if self._compiled is None:
            self._compiled = compile_module(_with_entry(self.program, self.name), entry=self.name)[self.name]
        return self._compiled(*arrays)

    def _pack(self, results: Sequence[Any]) -> Any:
        return results[0] if len(self.outputs) == 1 else tuple(results)

    def _arguments(self, arrays: Sequence[Any]) -> list[Array]:
        """The arguments as arrays of the types that the function declares; Python's numbers take them."""
        kinds = self.inputs
        if len(arrays) != len(kinds):
            raise user_error(f"@{self.name} takes {len(kinds)} arguments", code="GR104", expected=str(len(kinds)), found=str(len(arrays)))
        found: list[Array] = []
        for k, (value, kind) in enumerate(zip(arrays, kinds)):
            number = isinstance(value, bool | int | float) and not isinstance(value, np.generic)
            array = as_array(np.asarray(value, numpy_dtype(element_of(kind))) if number else value)
            if array.type != kind:
                raise user_error(
                    f"argument {k} of @{self.name} has another type than the function declares",
                    code="GR107",
                    expected=str(kind),
                    found=str(array.type),
                )
            found.append(array)
        return found

    def _call(self, leaves: Sequence[Array]) -> list[Array]:
        """A call of a copy of the function in the module that is traced."""
        trace, builder = current()
        name = _copied(trace.module, self.program, self.name)
        builder.loc = python_location()
        operands = [ssa(leaf) for leaf in leaves]
        op = builder.op(CallOp, operands, self.outputs, {"callee": SymbolRefAttr(name)})
        concrete: Sequence[Any] = [None] * len(self.outputs)
        if trace.recording and all(leaf.concrete is not None for leaf in leaves):
            concrete = evaluate_as_it_is(self.program, self.name, [leaf.concrete for leaf in leaves])
        kinds: Any = self.outputs
        return [Array(kind, value, trace, known) for kind, value, known in zip(kinds, op.results, concrete)]


def _concrete(kind: Any, value: Any) -> Array:
    return Array(kind, concrete=value)


def _functions(module: ModuleOp) -> dict[str, FuncOp]:
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}


def _callees(function: Operation) -> Iterable[tuple[Operation, str]]:
    """The ops that name another function, and its name."""
    for op in function.walk():
        callee = op.properties.get("callee")
        if isinstance(callee, SymbolRefAttr):
            yield op, callee.string_value()


def _with_entry(program: Program, name: str) -> ModuleOp:
    """The module with that function public."""
    if name in program.functions:
        return program
    made = program.clone()
    _functions(made)[name].properties.pop("sym_visibility", None)
    return made


def _copied(trace: ModuleTrace, program: Program, name: str) -> str:
    """The name of the copy, in the traced module, of a function and of all that it calls; copied once."""
    key = ("program", program)
    names: dict[str, str] = trace.calls.setdefault(key, {})
    functions, waiting = _functions(program), [name]
    added: list[FuncOp] = []
    while waiting:
        found = waiting.pop()
        if found in names or found not in functions:
            continue
        names[found] = trace.fresh(found)
        copy = functions[found].clone()
        copy.properties["sym_name"] = StringAttr(names[found])
        copy.properties["sym_visibility"] = StringAttr("private")
        added.append(copy)
        waiting += [callee for _, callee in _callees(copy)]
    for copy in added:
        for op, callee in list(_callees(copy)):
            if callee in names:
                op.properties["callee"] = SymbolRefAttr(names[callee])
        trace.module.body.block.add_op(copy)
    return names[name]


# -- compiling whole modules


class Evaluated:
    """A module that runs in the reference evaluator: `evaluated["main"](*arrays)`."""

    def __init__(self, module: ModuleOp) -> None:
        self._results = {f.sym_name.data: tuple(f.function_type.outputs) for f in public_functions(module)}
        self._names = tuple(self._results)
        self._module = module.clone()

    def __iter__(self) -> Any:
        return iter(self._names)

    def __getitem__(self, name: str) -> EvaluatedFunction:
        if name not in self._names:
            raise GradirError(
                f"the program has no public function @{name}",
                part="graph",
                code="GR052",
                expected=", ".join(f"@{known}" for known in self._names) or "a public function with a body",
                found=name,
            )
        return EvaluatedFunction(self, name)

    def run(self, name: str, arrays: Sequence[Any]) -> list[Any]:
        """The results of one function."""
        inputs = [np.asarray(array) for array in arrays]
        values = evaluate_level1(self._module, name, inputs)
        return [_as_typed(kind, value) for kind, value in zip(self._results[name], values, strict=True)]


def _as_typed(kind: Attribute, value: Any) -> Any:
    """A result as level 1 types it: lower levels have pairs for complex numbers, and integers without signs."""
    if not isinstance(kind, TensorType):
        return value
    dtype, found = numpy_dtype(kind.element_type), np.asarray(value)
    if found.dtype == dtype:
        return value
    return np.ascontiguousarray(found).view(dtype)[..., 0] if dtype.kind == "c" else found.view(dtype)


class EvaluatedFunction:
    """One function of it."""

    def __init__(self, module: Evaluated, name: str) -> None:
        self._module, self.name = module, name

    def __repr__(self) -> str:
        return f"<gradir function @{self.name} on {EVALUATED}>"

    def flat(self, *arrays: Any) -> tuple[Any, ...]:
        """The results as a tuple."""
        return tuple(self._module.run(self.name, arrays))

    def __call__(self, *arrays: Any) -> Any:
        results = self.flat(*arrays)
        return results[0] if len(results) == 1 else results


def compile_program(module: ModuleOp, *, target: str = "host", **options: Any) -> Module | Evaluated:
    """`gradir.compile` of a module: what runs its public functions.

    `target`: host, cpu, cpu:NAME (machine code), reference (the definition of each op), cuda:emulated (the PTX of a CUDA program, in the
    emulator: races, accesses out of bounds and reads of unwritten memory are errors). Other options as in `compile_module`.
    """
    if target == EVALUATED:
        return Evaluated(module)
    return compile_module(module, target=target, **options)


def parse(text: str, name: str = "<text>") -> Program:
    """The module that MLIR text of any level spells, verified, with its functions by name, `parse(text)["f"]`.

    `name` is the file that locations show. StableHLO is read by `gradir.frontends.stablehlo.import_text`.
    """
    return Program.of(parse_module(text, name))
