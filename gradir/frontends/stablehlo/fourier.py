"""fft in its four kinds."""

from __future__ import annotations

from xdsl.ir import Operation

from gradir.dialects import nd
from gradir.frontends.stablehlo.attributes import word_of
from gradir.frontends.stablehlo.conversion import Conversion, Rule, UnsupportedError, Values
from gradir.frontends.stablehlo.dialect import attribute, numbers


def fft(conversion: Conversion, op: Operation) -> Values:
    """The four kinds of transforms, over the last dimensions."""
    (operand,) = conversion.operands(op)
    kind, length = word_of(attribute(op, "fft_type"), "FFT"), list(numbers(op, "fft_length") or ())
    dims = len(length)
    if kind == "IRFFT":
        return [conversion.emit(nd.IrfftOp.make(operand, dims, length[-1]))]
    classes: dict[str, type[nd.Fourier]] = {"FFT": nd.FftOp, "IFFT": nd.IfftOp, "RFFT": nd.RfftOp}
    if kind not in classes:
        raise UnsupportedError(f"fft_type = {kind}")
    return [conversion.emit(classes[kind].make(operand, dims))]


RULES: dict[str, Rule] = {"stablehlo.fft": fft}
