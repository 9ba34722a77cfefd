"""The attribute `gradir.sizes` of a public function: what calls may bind its named sizes to.

`{b = {min = 1 : i64, max = 64 : i64, multiple = 8 : i64}}`, with some of the three per name. The runtime checks it once a call, the
evaluator draws its samples within it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, i64
from xdsl.ir import Attribute, Operation

from gradir.ir.passes import error_at

LIMITS = "gradir.sizes"


@dataclass(frozen=True)
class Limits:
    """`min <= size <= max`, size a multiple of `multiple`."""

    min: int = 0
    max: int | None = None
    multiple: int = 1

    def nearest(self, size: int) -> int:
        """An allowed size close to `size`: the next one, or the largest of all."""
        allowed = -(-max(size, self.min) // self.multiple) * self.multiple
        return allowed if self.max is None or allowed <= self.max else self.max // self.multiple * self.multiple


def limits_attribute(sizes: Mapping[str, Limits]) -> DictionaryAttr:
    """The attribute for these limits."""

    def row(size: Limits) -> DictionaryAttr:
        values = {"min": size.min, "max": size.max, "multiple": None if size.multiple == 1 else size.multiple}
        return DictionaryAttr({key: IntegerAttr(value, i64) for key, value in values.items() if value is not None})

    return DictionaryAttr({name: row(size) for name, size in sizes.items()})


def limits_of(function: Operation) -> dict[str, Limits]:
    """The limits of named sizes; GradirError GR053 where the attribute is malformed."""
    rows = function.attributes.get(LIMITS)
    if rows is None:
        return {}
    if not isinstance(rows, DictionaryAttr):
        raise _malformed(function, str(rows))
    return {name: _row(function, name, row) for name, row in rows.data.items()}


def _row(function: Operation, name: str, row: Attribute) -> Limits:
    given = row.data if isinstance(row, DictionaryAttr) else {}
    values = {key: cast("IntegerAttr[Any]", value).value.data for key, value in given.items() if isinstance(value, IntegerAttr)}
    known = values.keys() == given.keys() and values and values.keys() <= {"min", "max", "multiple"}
    if not known or values.get("multiple", 1) < 1 or not 0 <= values.get("min", 0) <= values.get("max", values.get("min", 0)):
        raise _malformed(function, f"{name} = {row}")
    return Limits(**values)


def _malformed(function: Operation, found: str) -> Exception:
    return error_at(
        function,
        f"the limits of a size in {LIMITS} are malformed",
        part="graph",
        code="GR053",
        expected="{name = {min = 0 : i64, max = 64 : i64, multiple = 8 : i64}}, with some of the three, 0 <= min <= max, multiple >= 1",
        found=found,
    )
