"""Further functions of one number, numpy's names; integers and booleans become f32 where the result is not whole."""

from __future__ import annotations

from typing import Any

from gradir.dialects import nd
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.elementwise import unary
from gradir.frontends.python.operands import as_array
from gradir.frontends.python.trace import apply

round_away = unary(nd.RoundAwayOp, "Nearest integer, halves away from 0")
trunc = unary(nd.TruncOp, "The integer next to x toward 0")


def round(x: Any) -> Array:
    """Nearest integer, halves to the even one; integers stay as they are"""
    x = as_array(x)
    return apply(nd.RoundEvenOp, [x], x.type) if promotion.is_float(x.dtype) else x


rint = round
