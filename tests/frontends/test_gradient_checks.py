"""`check_grads` accepts right derivatives of any order and in all modes, and names wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir import GradirError


def test_right_derivatives() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((3, 4)), rng.standard_normal((4, 2))
    gd.check_grads(lambda p: gd.tanh(p["x"] @ p["w"]), ({"x": x, "w": w},), order=2)
    gd.check_grads(lambda x, k: (gd.sin(x) * k.astype(np.float64), k), (x, np.int32(3)), order=1)
    gd.check_grads(lambda x: gd.sum(x * x), (x.astype(np.float32),), order=2)
    gd.check_grads(lambda z: gd.abs(z) * z, (np.array([3 + 4j, 1 - 1j]),))
    with gd.eager():
        gd.check_grads(lambda x: gd.exp(x), (x,), modes=("rev",))


def test_wrong_rules_are_named() -> None:
    @gd.custom_vjp
    def f(x: Any) -> Any:
        return gd.sin(x)

    f.defvjp(lambda x: (gd.sin(x), x), lambda x, ct: (ct * gd.sin(x),))
    with pytest.raises(GradirError, match=r"AD014.*\(rev\)") as caught:
        gd.check_grads(f, (np.array([0.3, 0.4]),), modes=("rev",))
    assert caught.value.part == "autodiff" and "central differences" in caught.value.expected
    f.defvjp(lambda x: (gd.sin(x), x), lambda x, ct: (ct * gd.stop_gradient(gd.cos(x)),))
    gd.check_grads(f, (np.array([0.3, 0.4]),))
    with pytest.raises(GradirError, match=r"AD014.*of fwd|AD014.*of rev"):
        gd.check_grads(f, (np.array([0.3, 0.4]),), order=2)


def test_no_such_mode() -> None:
    with pytest.raises(GradirError, match=r"GR104.*\n(.|\n)*sideways"):
        gd.check_grads(gd.sin, (np.ones(2),), modes=("sideways",))
