"""Every op's rule on every sample: against central differences in f64."""

import numpy as np
import pytest

from gradir.dialects import nd
from tests.autodiff.gradients import central_differences, cotangents, error, in_f64, promoted, reverse

SAMPLES = [(s.name, s) for ops in nd.FAMILIES.values() for op in ops for s in getattr(op, "samples", tuple)() if s.wrt]


@pytest.mark.parametrize(("name", "sample"), SAMPLES, ids=[n for n, _ in SAMPLES])
def test_vjp_agrees_with_central_differences(name: str, sample: nd.Sample) -> None:
    text, inputs = in_f64(sample.text), promoted(sample.inputs())
    cts = cotangents(text, inputs, seed=1)
    found = reverse(text, inputs, cts, sample.wrt)
    for k, gradient in zip(sample.wrt, found):
        expected = central_differences(text, inputs, cts, k)
        assert gradient.shape == expected.shape
        assert np.isfinite(expected).all(), "the sample sits on a singular point: leave the argument out of wrt"
        assert error(gradient, expected) < 1e-6
