"""Discrete Fourier transforms over the last `dims` dimensions; the dimensions before them are a batch. f32 and f64, by a library.

Forward transforms are not scaled, inverse ones divide by the number of points. Meaning: docs/numerics.md, row "fft".
"""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from gradir.dialects.nd.base import I64, TENSOR, NdOp, new
from gradir.dialects.nd.checks import check_shape
from gradir.dialects.text import Clause
from gradir.dialects.types import Dim, complex_of, element_of, i64_attr, is_complex, rank_of, real_of, shape_of, tensor

REALS = ("f32", "f64")


class Fourier(NdOp):
    """One transform over the last `dims` dimensions."""

    FAMILY: ClassVar[str] = "fourier"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dims", "dims", "int"),)
    TYPES: ClassVar[str] = "map"
    TAKES: ClassVar[str] = "complex"
    GIVES: ClassVar[str] = "complex"

    operand = operand_def(TENSOR)
    dims = prop_def(I64)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        count, rank = self.number("dims"), rank_of(self.operand)
        if not 1 <= count <= rank:
            self.fail(f"dims must be from 1 to {rank}, the rank of the operand, found {count}")
        for what, value, wanted in (("operand", self.operand, self.TAKES), ("result", self.result, self.GIVES)):
            element = element_of(value)
            if is_complex(element) != (wanted == "complex") or str(real_of(element)) not in REALS:
                names = "complex<f32>, complex<f64>" if wanted == "complex" else "f32, f64"
                self.fail(f"{what} must have one of {names}, found {element}")
        if real_of(element_of(self.operand)) != real_of(element_of(self.result)):
            self.fail(f"precisions differ: operand has {element_of(self.operand)}, result has {element_of(self.result)}")
        self.check_sizes()

    def check_sizes(self) -> None:
        """Which shape the result has."""
        check_shape(self, shape_of(self.operand), self.result)

    @classmethod
    def make(cls, operand: SSAValue, dims: int = 1) -> Self:
        """Over the last `dims` dimensions."""
        return new(cls, (operand,), cls.infer(operand.type), {"dims": i64_attr(dims)})

    @classmethod
    def infer(cls, operand: Attribute) -> Attribute:
        """The result's type."""
        return operand


@irdl_op_definition
class FftOp(Fourier):
    """`result[k] = sum over n of operand[n] e^(-2 pi i k n / N)` along each of the last dimensions. StableHLO: fft FFT. numpy: fftn."""

    name = "nd.fft"


@irdl_op_definition
class IfftOp(Fourier):
    """`result[n] = 1/N sum over k of operand[k] e^(2 pi i k n / N)` along each last dimension. StableHLO: fft IFFT. numpy: ifftn."""

    name = "nd.ifft"


@irdl_op_definition
class RfftOp(Fourier):
    """The first N/2 + 1 numbers, along the last dimension, of `nd.fft` of real numbers: the others are their conjugates.

    operand real [.., N]; result complex [.., N/2 + 1]. StableHLO: fft RFFT. numpy: fft.rfftn.
    """

    name = "nd.rfft"
    TAKES: ClassVar[str] = "real"

    def check_sizes(self) -> None:
        check_shape(self, shape_of(self.infer(self.operand.type)), self.result)

    @classmethod
    def infer(cls, operand: Attribute) -> Attribute:
        *rest, n = shape_of(operand)
        return tensor(complex_of(element_of(operand)), (*rest, half(n)))


@irdl_op_definition
class IrfftOp(Fourier):
    """The real numbers whose `nd.rfft` the operand is; the result's last size N says how many.

    operand complex [.., N/2 + 1]; result real [.., N]. Along the last dimension the imaginary parts of number 0 and, N even, N/2 are not
    read. StableHLO: fft IRFFT. numpy: fft.irfftn.
    """

    name = "nd.irfft"
    GIVES: ClassVar[str] = "real"

    def check_sizes(self) -> None:
        check_shape(self, shape_of(RfftOp.infer(self.result.type)), self.operand, "operand")

    @classmethod
    def make(cls, operand: SSAValue, dims: int = 1, length: int | None = None) -> Self:
        """Over the last `dims` dimensions; `length` is the last size of the result, even if it is not given."""
        *rest, m = shape_of(operand)
        size = length if length is not None else 2 * (m - 1) if isinstance(m, int) else None
        kind = tensor(real_of(element_of(operand)), (*rest, size))
        return new(cls, (operand,), kind, {"dims": i64_attr(dims)})


def half(n: Dim) -> Dim:
    """How many numbers describe the transform of n real ones; unknown of a name."""
    return (n // 2 + 1 if n else 0) if isinstance(n, int) else None


OPS: tuple[type[Fourier], ...] = (FftOp, IfftOp, RfftOp, IrfftOp)
