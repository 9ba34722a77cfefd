"""Arrays that stay on a GPU: `device_put` and `device`."""

from __future__ import annotations

from typing import Any

from gradir.dialects.target import cuda_place
from gradir.frontends.python.options import machine_in
from gradir.frontends.python.pytrees import flatten, unflatten
from gradir.runtime.caller import caller_location
from gradir.runtime.cuda.array import put
from gradir.runtime.cuda.device import Device, device_named


def device(target: str = "cuda") -> Device:
    """The device of a target: `cuda`, `cuda:N` or `cuda:emulated`, with its memory pool, streams and counters.

    GradirError RT070 where there is no such GPU, OP041 for what is no name.
    """
    name = machine_in(target)
    return device_named(cuda_place(name)[0] if name.startswith("cuda:") else name)


def device_put(tree: Any, target: str = "cuda") -> Any:
    """A copy of a container of arrays in the memory of a device, as `DeviceArray`s: programs for that target take them without copying.

    Arrays that are there already stay. Numbers become arrays of rank 0 with numpy's types.
    """
    where, place = device(target), caller_location()
    leaves, structure = flatten(tree)
    return unflatten(structure, [put(leaf, where, f"device_put, {place}") for leaf in leaves])
