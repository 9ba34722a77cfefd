"""Which GPUs are here, without an error where there are none."""

from __future__ import annotations

from gradir.errors import GradirError
from gradir.runtime.cuda.device import device_named


def architecture(device: str) -> str:
    """sm_NN of a device; empty where it is not here: a program may be compiled and saved elsewhere."""
    try:
        return device_named(device).limits.arch
    except GradirError:
        return ""
