"""Collectives of programs for one device, such as JAX's `shard_map` over a mesh of one: what a device exchanges with itself.

Larger groups are refused: no program here runs on several devices.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Operation

from gradir.dialects.types import static_shape
from gradir.frontends.stablehlo.conversion import Conversion, Rule, UnsupportedError, Values
from gradir.frontends.stablehlo.dialect import attribute


def alone(conversion: Conversion, op: Operation) -> Values:
    """The operands: every group holds one device."""
    groups, (_, size) = _rows(op, "replica_groups")
    if size > 1 or any(groups):
        raise UnsupportedError(f"groups of {size} devices: the program runs on one" if size > 1 else f"devices {groups}: there is one")
    return conversion.operands(op)


def permute(conversion: Conversion, op: Operation) -> Values:
    """The operand if the device sends it to itself, zeros if nobody sends."""
    pairs, _ = _rows(op, "source_target_pairs")
    if any(pairs):
        raise UnsupportedError(f"pairs of devices {pairs}: there is one")
    return conversion.operands(op) if pairs else [conversion.constant(0, result.type) for result in op.results]


def number_of_device(conversion: Conversion, op: Operation) -> Values:
    """0: the first device of one."""
    return [conversion.constant(0, op.results[0].type)]


def _rows(op: Operation, name: str) -> tuple[list[int], Sequence[int]]:
    """The numbers of a table of devices, and its shape."""
    found = attribute(op, name)
    if not isinstance(found, DenseIntOrFPElementsAttr):
        raise UnsupportedError(f"{name} that are not dense<..>")
    return [int(n) for n in found.get_values()], static_shape(found.type)


_EXCHANGES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_broadcast")

RULES: dict[str, Rule] = {
    **{f"stablehlo.{name}": alone for name in _EXCHANGES},
    "stablehlo.collective_permute": permute,
    "stablehlo.partition_id": number_of_device,
    "stablehlo.replica_id": number_of_device,
}
