"""Gradir: gradient IR, gradually lowered. The public names, nothing else; the compiler loads on first use."""

from gradir.errors import GradirError

__version__ = "0.1.0"

__all__ = ["GradirError", "__version__"]
