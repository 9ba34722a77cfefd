"""Named sizes of a call: bound by the shapes of inputs, computed where a size is `2*b+1`, checked against what the program asks of them.

Everything is checked once, before compiled code runs: two sizes for one name are RT004, a size that breaks `gradir.Dim`'s min, max or
multiple is RT009. `gradir.size_algebra` reads the texts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from gradir import size_algebra
from gradir.runtime.failures import misuse
from gradir.runtime.manifest import Dim, FunctionSpec


@dataclass
class CallSizes:
    """The sizes of one call. `values` maps a name to its size and to where that was seen first."""

    spec: FunctionSpec
    values: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    computed: list[tuple[str, int, str]] = field(default_factory=list[tuple[str, int, str]])
    """(size, found, where) of inputs whose size is an expression."""

    def see(self, size: str, found: int, where: str) -> None:
        """`where` has the size `found`; expressions wait for `finish`."""
        if found < 0:
            self._refuse(f"a negative size for '{size}'", f"{size} >= 0", f"{found} ({where})", "pass a size")
        if not size_algebra.is_name(size):
            self.computed.append((size, found, where))
            return
        value, first = self.values.setdefault(size, (found, where))
        if value != found:
            hint = f"all dims named '{size}' have one size in a call"
            self._refuse(f"two sizes for '{size}'", f"{size} = {value} ({first})", f"{found} ({where})", hint)

    def finish(self) -> None:
        """Names that only expressions tell, then the check of every expression and constraint."""
        if self.computed:
            self._solve()
        for size, found, where in self.computed:
            value = self.of(size)
            if value is not None and value != found:
                told = ", ".join(f"{name} = {self.values[name][0]} ({self.values[name][1]})" for name in size_algebra.names_in(size))
                self._refuse(
                    f"two sizes for '{size}'", f"{size} = {value} with {told}", f"{found} ({where})", "pass arrays that fit together"
                )
        for limits in self.spec.sizes:
            if limits.name in self.values and not limits.holds(self.values[limits.name][0]):
                found, where = self.values[limits.name]
                raise misuse(
                    self.spec, "RT009", f"the size '{limits.name}' is not allowed", str(limits), f"{found} ({where})", "pad the input"
                )

    def of(self, size: Dim) -> int | None:
        """The number that a size of the signature is in this call; None where nothing tells."""
        if isinstance(size, int):
            return size
        if size is None or any(name not in self.values for name in size_algebra.names_in(size)):
            return None
        return size_algebra.evaluate(size, {name: value for name, (value, _) in self.values.items()})

    def _solve(self) -> None:
        for name, k, rest, factor in size_algebra.solve([size for size, _, _ in self.computed], self.values):
            size, found, where = self.computed[k]
            left = found - (self.of(rest) or 0)
            if left % factor or left // factor < 0:
                self._refuse(f"no size '{name}' fits", f"{size} for some {name} >= 0", f"{found} ({where})", "see expected")
            self.values[name] = left // factor, f"{size} = {found}, {where}"

    def _refuse(self, message: str, expected: str, found: str, hint: str) -> NoReturn:
        raise misuse(self.spec, "RT004", message, expected, found, hint)
