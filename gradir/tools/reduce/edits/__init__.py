"""The edits of a reduction, in the order in which they are tried: what removes most comes first."""

from __future__ import annotations

from gradir.tools.reduce.edits.constants import simplify_attributes, simplify_constants
from gradir.tools.reduce.edits.control import drop_carried, keep_branch, one_trip
from gradir.tools.reduce.edits.edit import Choose, Edit
from gradir.tools.reduce.edits.functions import arguments_to_constants, drop_arguments, drop_functions, drop_results, inline_calls
from gradir.tools.reduce.edits.ops import drop_ops, ops_to_arguments, ops_to_constants, ops_to_operands
from gradir.tools.reduce.edits.types import named_sizes, simpler_elements, smaller_sizes, smaller_sizes_and_numbers

EDITS: tuple[Edit, ...] = (
    Edit("functions", drop_functions),
    Edit("results", drop_results),
    Edit("ops", drop_ops),
    Edit("ops to operands", ops_to_operands),
    Edit("ops to constants", ops_to_constants),
    Edit("branches", keep_branch, alone=True),
    Edit("trips", one_trip, alone=True),
    Edit("carried values", drop_carried, alone=True),
    Edit("calls", inline_calls, alone=True),
    Edit("ops to arguments", ops_to_arguments),
    Edit("arguments to constants", arguments_to_constants),
    Edit("arguments", drop_arguments),
    Edit("constants", simplify_constants),
    Edit("sizes", smaller_sizes, alone=True),
    Edit("sizes and numbers", smaller_sizes_and_numbers, alone=True),
    Edit("run-time sizes", named_sizes, alone=True),
    Edit("element types", simpler_elements, alone=True),
    Edit("attributes", simplify_attributes),
)

__all__ = ["EDITS", "Choose", "Edit"]
