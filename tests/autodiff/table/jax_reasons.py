"""What the table says about JAX without asking it: ops that JAX cannot differentiate, and the conventions that differ from JAX's.

The samples of an op stay away from the points where a convention decides; docs/derivative-conventions.md goes there.
"""

from __future__ import annotations

NO_COUNTERPART = {
    "nd.next_after": "JAX's nextafter has no derivative rule",
}
"""Ops whose derivative is compared with differences alone."""

BY_HAND = {
    "nd.acosh": "complex: by its formula; the derivative of lax.acosh takes the other root where Re z < 0",
    "nd.attention": "by its formula: JAX's gradients of a row of nothing are NaN",
    "nd.cbrt": "complex: by its formula; lax.cbrt is real",
    "nd.eigh": "vectors turned to the signs and phases that are ours",
    "nd.polygamma": "as a zeta function by its Euler-Maclaurin sum: the derivative in JAX wants integers",
    "nd.reduce_window": "products and dilated extrema by the elements of the windows: JAX has no derivative of such windows",
    "nd.scatter_general": "update by update: XLA drops a whole window over the edge",
    "nd.sign": "complex: by its formula; JAX's derivative is 0",
    "nd.svd": "vectors turned to the signs and phases that are ours",
    "nd.zeta": "by its Euler-Maclaurin sum: JAX's forward mode gives NaN",
}
"""Ops whose counterpart is not the function of that name, and why."""

CONVENTIONS = {
    "nd.abs": ("kinks_are_flat",),
    "nd.asin": ("strong_zero",),
    "nd.atan2": ("norms_are_flat_at_zero",),
    "nd.cbrt": ("strong_zero",),
    "nd.clamp": ("clamp",),
    "nd.cummax": ("cumulative_extrema_go_to_the_first",),
    "nd.cummin": ("cumulative_extrema_go_to_the_first",),
    "nd.gather": ("gather_with_duplicates_and_clamping",),
    "nd.log": ("where_does_not_poison",),
    "nd.logsumexp": ("rows_of_minus_infinity",),
    "nd.max": ("a_tie_is_shared",),
    "nd.min": ("a_tie_is_shared",),
    "nd.mul": ("strong_zero",),
    "nd.norm": ("norms_are_flat_at_zero",),
    "nd.pow": ("pow",),
    "nd.reduce_max": ("reduce_max_shares_ties",),
    "nd.reduce_min": ("reduce_max_shares_ties",),
    "nd.select": ("where_does_not_poison",),
    "nd.softmax": ("rows_of_minus_infinity",),
    "nd.sqrt": ("where_does_not_poison", "strong_zero"),
    "nd.variance": ("norms_are_flat_at_zero",),
}
"""Op -> the groups of `conventions.GROUPS` by which our derivative differs from JAX's at some points."""
