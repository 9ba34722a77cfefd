"""Helpers of the evaluator's tests: text in, arrays out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from gradir.errors import GradirError
from gradir.ir.text import parse_module
from gradir.reference import run

Array = np.ndarray[Any, Any]


def parse(text: str) -> ModuleOp:
    return parse_module(text, "test.mlir", check=False)


def evaluate(text: str, inputs: Sequence[Any] = (), entry: str = "f", **options: Any) -> list[Array]:
    return run(parse(text), entry, inputs, **options)


def one(arguments: str, body: str, result: str, *inputs: Any) -> Array:
    """The value `%r` that `body` computes."""
    (value,) = evaluate(f"func.func @f({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}", inputs)
    return value


def refused(code: str, text: str, inputs: Sequence[Any] = (), entry: str = "f", **options: Any) -> GradirError:
    """The error of that code that evaluating raises."""
    with pytest.raises(GradirError) as caught:
        evaluate(text, inputs, entry, **options)
    assert caught.value.code == code, str(caught.value)
    return caught.value


def refused_op(code: str, arguments: str, body: str, *inputs: Any) -> GradirError:
    return refused(code, f"func.func @f({arguments}) {{\n{body}\nreturn\n}}", inputs)
