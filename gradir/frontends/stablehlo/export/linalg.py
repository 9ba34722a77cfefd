"""Linear algebra and Fourier transforms, as far as StableHLO has ops for them."""

from __future__ import annotations

from gradir.dialects import nd
from gradir.dialects.nd.fourier import Fourier
from gradir.frontends.stablehlo.export.writer import ExportRule, Value, Values, Writer, i64s, kind_of


def cholesky(w: Writer, op: nd.CholeskyOp, operands: Values) -> Values:
    """StableHLO leaves the other triangle open: it is made 0 as ours is."""
    lower = op.flag("lower")
    factor = w.one("stablehlo.cholesky", operands, operands[0].type, f"lower = {str(lower).lower()}")
    return [w.select(_triangle(w, factor, lower=lower), factor, w.like(0, factor))]


def _triangle(w: Writer, x: Value, *, lower: bool) -> Value:
    rows, columns = (w.short(f"stablehlo.iota dim = {x.rank - k}", w.integers(x)) for k in (2, 1))
    return w.compare("GE" if lower else "LE", rows, columns)


def triangular_solve(w: Writer, op: nd.TriangularSolveOp, operands: Values) -> Values:
    """The same system."""
    transposed = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[op.transposition]
    flags = {"left_side": "left", "lower": "lower", "unit_diagonal": "unit_diagonal"}
    attributes = ", ".join(f"{name} = {str(op.flag(flag)).lower()}" for name, flag in flags.items())
    attributes += f", transpose_a = #stablehlo<transpose {transposed}>"
    return [w.one("stablehlo.triangular_solve", operands, operands[1].type, attributes)]


def _fourier(kind: str) -> ExportRule:
    def write(w: Writer, op: Fourier, operands: Values) -> Values:
        result = kind_of(op.result.type)
        real = result if kind == "IRFFT" else operands[0].type
        lengths = real.get_shape()[-op.number("dims") :]
        attributes = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {i64s(lengths)}"
        return [w.one("stablehlo.fft", operands, result, attributes)]

    return write


RULES: dict[str, ExportRule] = {
    "nd.cholesky": cholesky,
    "nd.triangular_solve": triangular_solve,
    "nd.fft": _fourier("FFT"),
    "nd.ifft": _fourier("IFFT"),
    "nd.rfft": _fourier("RFFT"),
    "nd.irfft": _fourier("IRFFT"),
}
