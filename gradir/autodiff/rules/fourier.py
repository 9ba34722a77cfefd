"""Derivatives of Fourier transforms: they are linear, so each cotangent is a transposed transform; without conjugation (JAX's pairing)."""

from __future__ import annotations

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from gradir import size_algebra
from gradir.autodiff.registry import Contribution, vjp
from gradir.autodiff.tensors import TensorBuilder, named_size
from gradir.dialects import nd
from gradir.dialects.types import complex_of, element_of, i64_attr, real_of, shape_of, tensor


@vjp(nd.FftOp)
def fft_vjp(t: TensorBuilder, op: nd.FftOp, ct: SSAValue) -> tuple[Contribution, ...]:
    """The matrix of the transform is symmetric."""
    return (t.emit(nd.FftOp, [ct], ct.type, dims=op.dims),)


@vjp(nd.IfftOp)
def ifft_vjp(t: TensorBuilder, op: nd.IfftOp, ct: SSAValue) -> tuple[Contribution, ...]:
    """The matrix of the transform is symmetric."""
    return (t.emit(nd.IfftOp, [ct], ct.type, dims=op.dims),)


@vjp(nd.RfftOp)
def rfft_vjp(t: TensorBuilder, op: nd.RfftOp, ct: SSAValue) -> tuple[Contribution, ...]:
    """dx = Re fft(ct, zeros where nothing was computed)"""
    rank = len(shape_of(ct))
    n, computed = named_size(op, op.operand, rank - 1), named_size(op, ct, rank - 1)
    if isinstance(n, int) and isinstance(computed, int):
        zeros = [0] * (rank - 1)
        full = t.pad(ct, 0.0, [*zeros, 0], [*zeros, n - computed])
    else:
        full = t.put(ct, t.zeros(tensor(element_of(ct), shape_of(op.operand))), [0] * rank)
    return (t.real(t.emit(nd.FftOp, [full], full.type, dims=op.dims)),)


@vjp(nd.IrfftOp)
def irfft_vjp(t: TensorBuilder, op: nd.IrfftOp, ct: SSAValue) -> tuple[Contribution, ...]:
    """dx[k] = m[k] / N conj(rfft(ct))[k], m = 2 but 1 at k = 0 and, n even, k = n/2: the others stand for two"""
    rank = len(shape_of(ct))
    sizes = [named_size(op, ct, d) for d in range(rank)]
    kind = tensor(complex_of(element_of(ct)), shape_of(op.operand))
    spectrum = t.emit(nd.RfftOp, [ct], kind, dims=i64_attr(op.number("dims")))
    real = tensor(real_of(element_of(ct)), shape_of(op.operand))
    places = t.iota(tensor(i64, shape_of(op.operand)), rank - 1)
    single = t.compare("eq", places, t.full(0.0, places.type))
    middle = t.compare("eq", t.add(places, places), t.full_size(sizes[-1], places.type))
    count = t.convert(
        t.full_size(size_algebra.maximum(size_algebra.product(sizes[rank - op.number("dims") :]), 1) or 1, places.type), element_of(real)
    )
    weight = t.div(t.select(t.logical_or(single, middle), t.full(1.0, real), t.full(2.0, real)), count)
    return (t.complex(t.mul(weight, t.real(spectrum)), t.neg(t.mul(weight, t.imag(spectrum)))),)
