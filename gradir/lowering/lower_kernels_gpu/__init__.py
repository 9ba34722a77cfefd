"""Level 3 kernels to `gpu` kernels and their launches: the CUDA half of `lower-kernels`."""

from gradir.lowering.lower_kernels_gpu.lower import lower_module

__all__ = ["lower_module"]
