"""Errors of devices: what a driver or the emulator says, with the kernel, the source line and the launch."""

from __future__ import annotations

from collections.abc import Sequence

from gradir.errors import GradirError
from gradir.runtime.cuda.device import Launched


def kernel_failed(
    device: str, kernel: str, location: str, function: str, grid: Sequence[int], block: Sequence[int], detail: str
) -> GradirError:
    """A kernel did something that it must not, and it is known which launch it was."""
    return GradirError(
        f"kernel @{kernel} failed on {device}",
        part="runtime",
        code="RT073",
        op="gpu.launch_func",
        function=f"@{function}",
        location=location,
        expected=f"a launch of {shape(grid)} blocks of {shape(block)} threads that ends" if grid else "a kernel that ends",
        found=detail,
        hint="this is a bug of the compiler, or of a kernel of yours; `gradir-translate --to=ptx` shows its text",
    )


def late_failure(device: str, detail: str, recent: Sequence[Launched]) -> GradirError:
    """The device reports that some kernel since the last wait failed."""
    rows = [
        f"@{kernel} of @{launched.function}" + (f" at {line}" if line else "") for launched in recent for kernel, line in launched.kernels
    ]
    return GradirError(
        f"a kernel failed on {device}: {detail}",
        part="runtime",
        code="RT073",
        op="gpu.launch_func",
        location=next((line for launched in recent for _, line in reversed(launched.kernels) if line), ""),
        expected="kernels that end",
        found="one of the last launches: " + "; ".join(rows[-8:]) if rows else "work that other libraries queued",
        hint="GRADIR_CUDA_BLOCKING=1 waits after each launch and names the one; the process has to start anew after such a failure",
    )


def launch_refused(device: str, what: str, detail: str, location: str = "", function: str = "") -> GradirError:
    """The driver did not take a launch, a copy or a map."""
    return GradirError(
        f"{device} refused {what}",
        part="runtime",
        code="RT074",
        op="gpu.launch_func",
        function=function,
        location=location,
        expected="a status of 0",
        found=detail,
        hint="compile for the architecture of this device (target cuda:sm_NN), or report the program",
    )


def no_device(found: str, hint: str) -> GradirError:
    """There is no such GPU here, or nothing to reach it with."""
    return GradirError(
        "no such GPU here",
        part="runtime",
        code="RT070",
        expected="an NVIDIA GPU, its driver, and cupy",
        found=found,
        hint=hint,
    )


def shape(sizes: Sequence[int]) -> str:
    """`32x8`."""
    kept = list(sizes)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return "x".join(map(str, kept))
