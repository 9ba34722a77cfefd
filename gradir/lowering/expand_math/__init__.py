"""`expand-math`: what the target has no instruction for becomes polynomials (see `expansion`)."""

from gradir.lowering.expand_math.expansion import ExpandMath

__all__ = ["ExpandMath"]
