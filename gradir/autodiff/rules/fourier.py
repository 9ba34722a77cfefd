"""Derivatives of Fourier transforms: they are linear, so each cotangent is a transposed transform; without conjugation (JAX's pairing)."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from gradir.autodiff.registry import Contribution, vjp
from gradir.autodiff.tensors import TensorBuilder, known_sizes
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
    *lead, n = known_sizes(op, op.operand)
    missing = n - known_sizes(op, ct)[-1]
    zeros = [0] * len(lead)
    full = t.pad(ct, 0.0, [*zeros, 0], [*zeros, missing])
    return (t.real(t.emit(nd.FftOp, [full], full.type, dims=op.dims)),)


@vjp(nd.IrfftOp)
def irfft_vjp(t: TensorBuilder, op: nd.IrfftOp, ct: SSAValue) -> tuple[Contribution, ...]:
    """dx[k] = m[k] / N conj(rfft(ct))[k], m = 2 but 1 at k = 0 and, n even, k = n/2: the others stand for two"""
    sizes = known_sizes(op, ct)
    kind = tensor(complex_of(element_of(ct)), shape_of(op.operand))
    spectrum = t.emit(nd.RfftOp, [ct], kind, dims=i64_attr(op.number("dims")))
    real = tensor(real_of(element_of(ct)), shape_of(op.operand))
    places = t.iota(tensor(i32, shape_of(op.operand)), len(sizes) - 1)
    single = t.compare("eq", places, t.full(0.0, places.type))
    if sizes[-1] % 2 == 0:
        single = t.logical_or(single, t.compare("eq", places, t.full(float(sizes[-1] // 2), places.type)))
    count = max(1, prod(sizes[len(sizes) - op.number("dims") :]))
    weight = t.select(single, t.full(1.0 / count, real), t.full(2.0 / count, real))
    return (t.complex(t.mul(weight, t.real(spectrum)), t.neg(t.mul(weight, t.imag(spectrum)))),)
