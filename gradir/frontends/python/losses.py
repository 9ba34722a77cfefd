"""Losses. They are stable where their parts are not, and take `reduction`: "mean", "sum" or "none" (one loss per element or row)."""

from __future__ import annotations

from typing import Any

from gradir.dialects import nd
from gradir.frontends.python.activation import floats, softplus
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.elementwise import abs, add, exp as exponential, less_equal, log, multiply, negative, square, subtract, where
from gradir.frontends.python.gather_scatter import take_along_axis
from gradir.frontends.python.operands import as_array, together
from gradir.frontends.python.reduction import mean, sum
from gradir.frontends.python.shape import reshape
from gradir.frontends.python.trace import apply, user_error


def _reduced(name: str, loss: Array, reduction: str) -> Array:
    if reduction not in ("mean", "sum", "none"):
        raise user_error(f"{name}: unknown reduction", code="GR118", expected="'mean', 'sum' or 'none'", found=repr(reduction))
    return loss if reduction == "none" else mean(loss) if reduction == "mean" else sum(loss)


def _strong(x: Array, y: Array) -> Array:
    """x * y, 0 where one of them is 0 whatever the other."""
    return apply(nd.MulStrongOp, [x, y], x.type)


def mse_loss(prediction: Any, target: Any, reduction: str = "mean") -> Array:
    """(prediction - target)**2"""
    x, y = together("mse_loss", floats(prediction), floats(target))
    return _reduced("mse_loss", square(subtract(x, y)), reduction)


def l1_loss(prediction: Any, target: Any, reduction: str = "mean") -> Array:
    """|prediction - target|"""
    x, y = together("l1_loss", floats(prediction), floats(target))
    return _reduced("l1_loss", abs(subtract(x, y)), reduction)


def huber_loss(prediction: Any, target: Any, delta: float = 1.0, reduction: str = "mean") -> Array:
    """d**2 / 2 where d = |prediction - target| <= delta, else delta (d - delta / 2)"""
    x, y = together("huber_loss", floats(prediction), floats(target))
    distance = abs(subtract(x, y))
    near = less_equal(distance, delta)
    inside = multiply(square(where(near, distance, 0.0)), 0.5)
    return _reduced("huber_loss", where(near, inside, multiply(subtract(distance, 0.5 * delta), delta)), reduction)


def binary_cross_entropy_with_logits(logits: Any, target: Any, reduction: str = "mean") -> Array:
    """-(y log s + (1 - y) log(1 - s)), s = sigmoid(logits), y the target in 0 .. 1; 0 where an infinite logit is right"""
    x, y = together("binary_cross_entropy_with_logits", floats(logits), floats(target))
    loss = add(_strong(y, softplus(negative(x))), _strong(subtract(1.0, y), softplus(x)))
    return _reduced("binary_cross_entropy_with_logits", loss, reduction)


def kl_div(log_prediction: Any, target: Any, log_target: bool = False, reduction: str = "mean") -> Array:
    """target (log target - log_prediction) per element, 0 where the target is 0; `log_target`: the target is given by its logarithm"""
    x, y = together("kl_div", floats(log_prediction), floats(target))
    chance, logarithm = (exponential(y), y) if log_target else (y, log(y))
    return _reduced("kl_div", _strong(chance, subtract(logarithm, x)), reduction)


def nll_loss(log_probabilities: Any, labels: Any, reduction: str = "mean") -> Array:
    """-log_probabilities[n, labels[n]] per row: log_probabilities [N, C], integer labels [N], clamped to 0 .. C-1"""
    x, y = floats(log_probabilities), as_array(labels)
    if x.ndim != 2 or y.shape != x.shape[:1] or y.dtype.kind not in "iu":
        raise user_error(
            "nll_loss: shapes do not fit",
            code="GR001",
            expected="log_probabilities [N, C] and integer labels [N]",
            found=f"{x.type} and {y.type}",
        )
    chosen = reshape(take_along_axis(x, reshape(y, (*y.shape, 1)), 1), y.shape)
    return _reduced("nll_loss", negative(chosen), reduction)
