"""What the table says about JAX without asking it: ops that JAX cannot differentiate, and the conventions that differ from JAX's.

Conventions are rows of docs/numerics.md, "Derivatives"; the samples of an op stay away from the points where they matter, `kinks` goes there.
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
    "nd.eigh": "signs of the vectors turned to ours",
    "nd.polygamma": "as a zeta function by its Euler-Maclaurin sum: the derivative in JAX wants integers",
    "nd.reduce_window": "products and dilated extrema by the elements of the windows: JAX has no derivative of such windows",
    "nd.scatter_general": "update by update: XLA drops a whole window over the edge",
    "nd.sign": "complex: by its formula; JAX's derivative is 0",
    "nd.svd": "signs of the vectors turned to ours",
    "nd.zeta": "by its Euler-Maclaurin sum: JAX's forward mode gives NaN",
}
"""Ops whose counterpart is not the function of that name, and why."""

CONVENTIONS = {
    "nd.abs": ("kinks are flat",),
    "nd.atan2": ("flat at the origin",),
    "nd.clamp": ("a bound belongs to the inside",),
    "nd.cbrt": ("strong zero",),
    "nd.gather": ("sums in f32",),
    "nd.logsumexp": ("rows of -inf",),
    "nd.norm": ("flat at the origin",),
    "nd.mul": ("strong zero",),
    "nd.select": ("strong zero",),
    "nd.sign": ("complex sign",),
    "nd.softmax": ("rows of -inf",),
    "nd.sqrt": ("strong zero",),
    "nd.variance": ("flat at the origin",),
}
"""Op -> the conventions by which our derivative differs from JAX's at some points."""
