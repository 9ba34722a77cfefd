"""All folds of `nd` in one table: what `canonicalize` and `nd-simplify` use."""

from __future__ import annotations

from xdsl.ir import Operation

from gradir.lowering.folds import nd_effects, nd_elementwise, nd_reduction, nd_regions, nd_shape
from gradir.lowering.folds.table import Rule

FOLDS: dict[type[Operation], Rule] = {
    **nd_elementwise.FOLDS,
    **nd_shape.FOLDS,
    **nd_reduction.FOLDS,
    **nd_regions.FOLDS,
    **nd_effects.FOLDS,
}
