"""Arrays of other libraries, seen through DLPack: what an exporter gets wrong is an error of ours that names the exporter."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradir.errors import GradirError
from gradir.runtime.caller import caller_location


def from_dlpack(exporter: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """A view of what `exporter` exports; GradirError RT024 where it exports nothing that numpy can read."""
    try:
        return np.from_dlpack(exporter)
    except GradirError:  # a Buffer that was given away
        raise
    except Exception as error:  # the exporter's own code runs: anything may come
        raise GradirError(
            "an array cannot be read through DLPack",
            part="runtime",
            code="RT024",
            location=caller_location(),
            expected="an exporter of CPU memory: `__dlpack__` gives a capsule, `__dlpack_device__` a device that numpy reads",
            found=f"{type(exporter).__name__}: {type(error).__name__}: {error}"[:160],
            hint="move the array to the CPU and to a type that numpy has, or pass numpy.asarray(x)",
        ) from error


__all__ = ["from_dlpack"]
