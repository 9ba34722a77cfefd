"""Level 3 -> 4: every kernel becomes loops over vectors, by the generator of its kind.

`LowerKernels` is the pass, `lower_kernel` does one function.
"""

from gradir.lowering.lower_kernels.lower import LowerKernels, lower_kernel

__all__ = ["LowerKernels", "lower_kernel"]
