"""The mark of tests that give PTX to NVIDIA's assembler."""

from __future__ import annotations

import pytest

from gradir.targets.nvptx import find_ptxas

NO_PTXAS = "no ptxas: pip install nvidia-cuda-nvcc-cu12 (the extra gradir[ptx]), or CUDA's on the PATH"

needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason=NO_PTXAS)
