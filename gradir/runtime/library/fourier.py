"""`fft.*`: transforms over the last dimensions by numpy (pocketfft), f32 in f32."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradir.runtime.library import Array, register

Config = Mapping[str, Any]


def _writer(kind: str) -> Callable[..., None]:
    def write(config: Config, outputs: Sequence[Array], x: Array) -> None:
        (out,) = outputs
        axes = tuple(range(x.ndim - int(config["dims"]), x.ndim))
        with np.errstate(all="ignore"):  # NaN and infinity are results, not news
            if not out.size or not x.size:
                out[...] = 0
            elif kind == "irfft":
                out[...] = np.fft.irfftn(x, [out.shape[axis] for axis in axes], axes)
            else:
                function: Callable[..., Any] = {"fft": np.fft.fftn, "ifft": np.fft.ifftn, "rfft": np.fft.rfftn}[kind]
                out[...] = function(x, axes=axes)

    return write


for _kind in ("fft", "ifft", "rfft", "irfft"):
    register(f"fft.{_kind}", _writer(_kind), into=True)
