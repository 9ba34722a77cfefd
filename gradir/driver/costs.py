"""What one run of a level-1 module costs, counted on the last form of level 1, which is what runs."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from gradir.driver.lower import lower
from gradir.lowering.flops import flops


def flops_of(module: ModuleOp, *, trips: int | None = None) -> int:
    """Floating-point operations of the only public function, after derivatives, expansions and simplifications; `module` is consumed.

    `trips` stands for what only the run knows. GradirError GR071 without, GR072 for several public functions.
    """
    return flops(lower(module, last="tensor", check=False), trips=trips)
