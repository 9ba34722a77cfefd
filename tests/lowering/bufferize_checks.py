"""One check for the tests of `bufferize` and `plan-memory`: all levels give the same numbers, upstream's tools agree, nothing forbidden remains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, print_module, verify_module
from gradir.lowering.bufferize import Bufferize
from gradir.lowering.plan_memory import PlanMemory
from gradir.reference import run
from tests.lowering.bufferize_programs import CELL, module
from tests.upstream_runner import MLIR_OPT, MLIR_TRANSLATE, accepted_by_upstream, run_upstream


class Checked:
    """What became of one program: `text` after bufferize, `planned` after plan-memory, `copies` per function, the plan's facts."""

    def __init__(self, source: str, *, entry: str = "f") -> None:
        self.entry = entry
        self.source = parse_module(source)
        self.module = self.source.clone()
        context = PassContext()
        Bufferize().apply(self.module, context)
        verify_module(self.module)
        self.text = print_module(self.module)
        self.copies: dict[str, list[str]] = context.facts["bufferize"]
        self.planned_module = self.module.clone()
        PlanMemory().apply(self.planned_module, context)
        verify_module(self.planned_module)
        self.planned = print_module(self.planned_module)
        self.facts: dict[str, int] = context.facts["plan-memory"][entry]
        assert "tensor<" not in self.text and "tensor<" not in self.planned
        assert self.facts["arena"] >= self.facts["peak"]

    @property
    def body(self) -> str:
        """The text of the entry after bufferize."""
        return self.text[self.text.index(f"func.func @{self.entry}") :]

    def agrees(self, inputs: Sequence[Any], *, upstream: bool = True, shapes: Sequence[Sequence[int]] | None = None) -> Checked:
        """Levels 2 and 3 give the same numbers, in the reference and, if asked for, in upstream's compiler."""
        want = run(self.source, self.entry, inputs)
        kept = [np.copy(x) for x in inputs]
        shapes = [w.shape for w in want] if shapes is None else shapes
        for lowered in (self.module, self.planned_module):
            _same(run(lowered, self.entry, inputs, result_shapes=shapes), want)
        if upstream and MLIR_OPT and MLIR_TRANSLATE:
            for module, text in ((self.module, self.text), (self.planned_module, self.planned)):
                accepted_by_upstream(text)
                _same(run_upstream(module, self.entry, inputs, shapes), want, tolerance=1e-5)
        _same(list(inputs), kept)
        return self


def _same(got: Sequence[Any], want: Sequence[Any], tolerance: float = 0.0) -> None:
    assert len(got) == len(want)
    for number, (g, w) in enumerate(zip(got, want)):
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance, err_msg=f"result {number}")


def module_of(text: str) -> ModuleOp:
    """A parsed and verified module."""
    return parse_module(text)


HEAD = "".join(f"%c{k} = arith.constant {k} : index\n" for k in range(5))


def arrays(seed: int = 0) -> list[object]:
    """%x, %y, %s, %n, %flag of `module`."""
    r = np.random.default_rng(seed)
    cells = [r.standard_normal((3, 3)).astype(np.float32) for _ in range(2)]
    return [*cells, r.standard_normal((5, 3, 3)).astype(np.float32), np.int64(2), np.bool_(True)]


def program(body: str, results: str = CELL) -> Checked:
    return Checked(module(HEAD + body, results=results)).agrees(arrays())
