"""Derivatives of the parts of complex numbers.

A cotangent w of a complex value z pairs with its change as Re(w dz), without conjugation (JAX's convention; docs/numerics.md).
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from gradir.autodiff.registry import Contribution, vjp
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import nd

Rule = tuple[Contribution, ...]


@vjp(nd.RealOp)
def real_vjp(t: TensorBuilder, op: nd.RealOp, ct: SSAValue) -> Rule:
    """c Re(dz) = Re(c dz)"""
    return (t.complex(ct, t.full_like(0.0, ct)),)


@vjp(nd.ImagOp)
def imag_vjp(t: TensorBuilder, op: nd.ImagOp, ct: SSAValue) -> Rule:
    """c Im(dz) = Re(-i c dz)"""
    return (t.complex(t.full_like(0.0, ct), t.neg(ct)),)


@vjp(nd.ComplexOp)
def complex_vjp(t: TensorBuilder, op: nd.ComplexOp, ct: SSAValue) -> Rule:
    """Re(w (dx + i dy)) = Re(w) dx - Im(w) dy"""
    return (lambda: t.real(ct), lambda: t.neg(t.imag(ct)))


@vjp(nd.ConjOp)
def conj_vjp(t: TensorBuilder, op: nd.ConjOp, ct: SSAValue) -> Rule:
    """Re(w conj(dz)) = Re(conj(w) dz)"""
    return (t.unary(nd.ConjOp, ct),)
