"""The rows of NUMERICS for single ops once more: the same tests as for `evaluate`, each op compiled as a program of its own, at every setting."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, Operation

from gradir.driver.compile import compile_module
from gradir.ir.builder import Builder, new_function
from tests.dialects import build
from tests.dialects.test_numerics import *  # noqa: F403  (its tests become tests of this module)
from tests.dialects.test_numerics_bits import (  # noqa: F401  as above, those that test one op
    test_narrow_parts_come_lowest_first,
    test_next_after,
    test_reduce_precision_rounds_to_even_and_flushes_denormals_of_the_narrow_format,
)
from tests.dialects.test_numerics_cumulative import *  # noqa: F403
from tests.dialects.test_numerics_mathematics import *  # noqa: F403
from tests.dialects.test_numerics_quantization import test_by_axis, test_clamp_then_nearest_even  # noqa: F401
from tests.dialects.test_numerics_special import (  # noqa: F401  zeta without the instruction for fma is long code
    test_bessel_functions_at_zero_and_infinity,
    test_fma_rounds_once,
    test_lgamma_is_accurate_next_to_its_zeros,
)

Array = np.ndarray[Any, Any]


SETTINGS: dict[str, dict[str, Any]] = {
    "optimize=0": {"optimize": 0},
    "optimize=1": {"optimize": 1},
    "optimize=2": {"optimize": 2},
    "x86-64": {"target": "cpu:x86-64"},
}
"""Name -> options of `compile_module`: as much of the road as each setting runs, and a processor with SSE2 alone."""


def compiled(block: Block, op: Operation, arrays: Sequence[Array], **options: Any) -> Array:
    """The op as the body of a function, compiled from nothing and called."""
    block.add_op(op)
    Builder(block).op(ReturnOp, list(op.results))
    module = ModuleOp([new_function("f", block, [result.type for result in op.results])])
    return compile_module(module, cache=False, threads=1, **options)["f"](*arrays)


@pytest.fixture(autouse=True, params=SETTINGS)
def compiler(request: pytest.FixtureRequest) -> Iterator[None]:
    """`evaluate` of the rows compiles."""
    if platform.machine() not in ("x86_64", "AMD64") and request.param == "x86-64":
        pytest.skip("a setting of x86-64")
    token = build.RUNNER.set(partial(compiled, **SETTINGS[request.param]))
    yield
    build.RUNNER.reset(token)


def test_the_rows_are_compiled() -> None:
    """A row fails when the compiled program is wrong."""
    build.RUNNER.set(lambda block, op, arrays: compiled(block, op, arrays) + 1)
    with pytest.raises(AssertionError):
        test_integer_division_is_toward_zero()  # noqa: F405
