"""JAX functions through Gradir: `jit(f)` runs one, `from_jax(f, ..)` gives its module of level 1.

JAX is optional (`pip install gradir[jax]`). It traces the function and prints StableHLO; the importer reads that (docs/stablehlo.md), and
from there it is a program like any other.
"""

from __future__ import annotations

from gradir.frontends.jax.jit import JaxFunction, from_jax, jit

__all__ = ["JaxFunction", "from_jax", "jit"]
