"""Samples of Fourier transforms: odd and even sizes, several dimensions, one and no point, NaN."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import INF, NAN, Array, type_text, wave
from gradir.dialects.nd.samples.linalg import call, of


def parts(name: str, op: str, dims: int, x: Array, shape: Sequence[int]) -> Sample:
    """Real operands and results around a transform, so that its derivative can be checked numerically."""
    elem = "f64"
    real = type_text(x.real)
    takes = f"tensor<{'x'.join(map(str, x.shape))}xcomplex<{elem}>>" if x.dtype.kind == "c" else real
    sizes = "x".join(map(str, shape))
    gives = f"tensor<{sizes}x{elem}>" if op == "irfft" else f"tensor<{sizes}xcomplex<{elem}>>"
    lines: list[str] = []
    inputs = [x.real.copy(), x.imag.copy()] if x.dtype.kind == "c" else [x]
    arguments = ", ".join(f"%{k}: {real}" for k in range(len(inputs)))
    if x.dtype.kind == "c":
        lines.append(f"%z = nd.complex %0, %1 : {real}")
    lines.append(f"%y = nd.{op} {'%z' if len(inputs) == 2 else '%0'} dims {dims} : {takes} -> {gives}")
    out = f"tensor<{sizes}x{elem}>"
    results, returned = out, "%y"
    if op != "irfft":
        lines += [f"%re = nd.real %y : {gives}", f"%im = nd.imag %y : {gives}"]
        results, returned = f"{out}, {out}", "%re, %im"
    body = "\n  ".join(lines)
    signature = results if op == "irfft" else f"({results})"
    text = f"func.func @f({arguments}) -> {signature} {{\n  {body}\n  return {returned} : {results}\n}}\n"
    return Sample(name, text, lambda: tuple(a.copy() for a in inputs), tuple(range(len(inputs))))


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one transform."""
    op = cls.name.removeprefix("nd.")
    takes_real, gives_real = op == "rfft", op == "irfft"

    def data(shape: Sequence[int], dtype: type) -> Array:
        """Real or complex numbers, whatever the op takes; `shape` is that of the real side."""
        real = np.float64 if dtype == np.complex128 else np.float32
        sizes = (*shape[:-1], shape[-1] // 2 + 1) if gives_real else tuple(shape)
        x = wave(*sizes, dtype=real)
        return x if takes_real else (x + 1j * wave(*sizes, dtype=real, shift=0.3)).astype(dtype)

    def result(shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] // 2 + 1) if takes_real else tuple(shape)

    def one(name: str, x: Array, shape: Sequence[int], dims: int = 1) -> Sample:
        single = x.dtype in (np.float32, np.complex64)
        gives = (np.float32 if single else np.float64) if gives_real else (np.complex64 if single else np.complex128)
        return call(name, f"nd.{op} %0 dims {dims}", [x], [of(shape, np.dtype(gives))])

    bad = data((2, 4), np.complex64)
    bad[0, 1], bad[1, 0] = NAN, INF
    return (
        parts("f64", op, 1, data((6,), np.complex128), result((6,))),
        parts("f64 odd batch", op, 1, data((2, 5), np.complex128), result((2, 5))),
        parts("f64 planes", op, 2, data((3, 4), np.complex128), result((3, 4))),
        one("f32", data((2, 8), np.complex64), result((2, 8))),
        one("f32 cube odd", data((2, 3, 5), np.complex64), result((2, 3, 5)), 3),
        one("f32 special", bad, result((2, 4))),
        one("f32 one", data((3, 1), np.complex64), result((3, 1))),
        one("f32 no batch", data((0, 4), np.complex64), result((0, 4))),
    )
