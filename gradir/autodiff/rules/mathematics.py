"""Derivatives of the further functions of one number. Conventions at singular points: docs/numerics.md, "Derivatives"."""

from __future__ import annotations

from gradir.autodiff.registry import skip
from gradir.dialects.nd import mathematics as nd

for _op in nd.ROUNDING:
    skip(_op, "piecewise constant: derivative 0 everywhere")
