"""Slices of fixed size from dimensions of run-time size: compiled code never reads beyond them, it stops."""

from __future__ import annotations

import numpy as np
import pytest

import gradir
from gradir.errors import GradirError

B, TWO, INDEX = 'tensor<?xf32, ["b"]>', "tensor<2xf32>", "tensor<i32>"

SLICES = {
    "slice": (f"nd.slice %x start [0] limit [2] : {B} -> {TWO}", "nd.slice of dimension 0: 2 does not fit in b"),
    "dynamic_slice": (f"nd.dynamic_slice %x, %i sizes [2] : {B}, {INDEX} -> {TWO}", "a slice of dimension 0: 2 does not fit in b"),
}


@pytest.mark.parametrize("name", SLICES)
def test_a_slice_that_does_not_fit_stops_the_program(name: str) -> None:
    line, message = SLICES[name]
    text = f"func.func @f(%x: {B}, %i: {INDEX}) -> {TWO} {{\n  %y = {line}\n  return %y : {TWO}\n}}"
    function = gradir.compile(gradir.parse(text, "slices.mlir"), target="cpu")["f"]
    x, first = np.arange(3, dtype=np.float32), np.int32(0)
    assert function(x, first).tolist() == [0, 1] and function(x[:2], first).tolist() == [0, 1]
    with pytest.raises(GradirError) as caught:
        function(x[:1], first)
    assert (caught.value.code, caught.value.message, caught.value.location) == ("RT020", message, "slices.mlir:2:8")


def test_limits_of_names_spare_the_check() -> None:
    line = SLICES["slice"][0]
    text = (
        f"func.func @f(%x: {B}) -> {TWO} attributes {{gradir.sizes = {{b = {{min = 2 : i64}}}}}} {{\n  %y = {line}\n  return %y : {TWO}\n}}"
    )
    program = gradir.compile(gradir.parse(text), target="cpu")
    assert not program.manifest.source_map
    assert gradir.compile(gradir.parse(text.replace("min = 2", "min = 1")), target="cpu").manifest.source_map
