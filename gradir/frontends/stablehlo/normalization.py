"""Batch normalisation: `batch_norm_training` and `batch_norm_inference` are ops of level 1, `batch_norm_grad` is spelled out."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.nd.expansion import Expansion
from gradir.dialects.types import rank_of
from gradir.frontends.stablehlo.conversion import Conversion, Rule, UnsupportedError, Values
from gradir.frontends.stablehlo.dialect import attribute, number


def _epsilon(op: Operation) -> float:
    value: Any = attribute(op, "epsilon")
    if not isinstance(value, FloatAttr):
        raise UnsupportedError("no number for epsilon")
    return value.value.data


def _emit(conversion: Conversion, made: nd.BatchNormTrainOp | nd.BatchNormInferOp) -> Values:
    conversion.emit(made)
    return made.results


def training(conversion: Conversion, op: Operation) -> Values:
    """(normalised, mean, variance)"""
    x, scale, offset = conversion.operands(op)
    return _emit(conversion, nd.BatchNormTrainOp.make(x, scale, offset, number(op, "feature_index", 0), _epsilon(op)))


def inference(conversion: Conversion, op: Operation) -> Values:
    """Normalised by the statistics given."""
    x, scale, offset, mean, variance = conversion.operands(op)
    return _emit(conversion, nd.BatchNormInferOp.make(x, scale, offset, mean, variance, number(op, "feature_index", 0), _epsilon(op)))


def gradient(conversion: Conversion, op: Operation) -> Values:
    """The cotangents of operand, scale and offset, from the mean and variance that training gave:

    dx = scale / std (ct - mean(ct) - z mean(ct z)), dscale = sum(ct z), doffset = sum(ct), with z = (x - mean) / std.
    """
    dim = number(op, "feature_index", 0)
    e = Expansion(conversion.builder)
    given = conversion.operands(op)
    x, scale, mean, variance, ct = (e.widen(value) for value in given)
    dims = [d for d in range(rank_of(x)) if d != dim]

    def along(vector: SSAValue) -> SSAValue:
        return e.along(vector, x, dim)

    deviation = e.sqrt(e.add(variance, _epsilon(op)))
    z = e.div(e.sub(x, along(mean)), along(deviation))
    total, weighted = e.sum(ct, dims), e.sum(e.mul(ct, z), dims)
    count = e.count(x, dims, total)
    inner = e.sub(e.sub(ct, along(e.div(total, count))), e.mul(z, along(e.div(weighted, count))))
    results = (e.mul(along(e.div(scale, deviation)), inner), weighted, total)
    return [e.narrow(value, old.type) for value, old in zip(results, op.results)]


RULES: dict[str, Rule] = {
    "stablehlo.batch_norm_training": training,
    "stablehlo.batch_norm_inference": inference,
    "stablehlo.batch_norm_grad": gradient,
}
