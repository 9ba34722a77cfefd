"""`python bench/peers.py install [NAME ...]`: the systems we compare with, each in its own environment under build/peers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PEERS = Path(__file__).resolve().parent.parent / "build" / "peers"
PACKAGES = {
    "jax": ["jax", "jaxlib", "numpy"],
    "torch": ["torch==2.14.1", "numpy", "ml_dtypes", "onnx", "onnxscript"],
    "iree": ["iree-base-compiler", "iree-base-runtime", "numpy", "ml_dtypes"],
    "ort": ["onnxruntime", "numpy", "ml_dtypes"],
    "numba": ["numba", "scipy", "numpy", "ml_dtypes"],
}
"""JAX writes what IREE compiles, PyTorch (with onnx) what ONNX Runtime runs: without them those two have no workloads."""


def install(names: list[str]) -> None:
    """Create the environments that are missing."""
    for name in names or list(PACKAGES):
        home = PEERS / name
        if not (home / "bin" / "python").exists():
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", *PACKAGES[name]], check=True)
        print(f"{name}: {home}")


if __name__ == "__main__":
    if sys.argv[1:2] != ["install"]:
        raise SystemExit(__doc__)
    install(sys.argv[2:])
