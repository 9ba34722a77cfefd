"""Collectives of one device change nothing; those of several are refused."""

import numpy as np
import pytest

from gradir.errors import GradirError
from gradir.frontends.stablehlo import import_text
from gradir.reference import run

X = np.arange(4, dtype=np.float32)
BODY = " ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%s = stablehlo.add %a, %b : tensor<f32>\nstablehlo.return %s : tensor<f32>\n})"


def program(name: str, attributes: str, body: str = "") -> str:
    return (
        f'func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n%r = "stablehlo.{name}"(%x) <{{{attributes}}}>{body} : '
        "(tensor<4xf32>) -> tensor<4xf32>\nreturn %r : tensor<4xf32>\n}\n"
    )


def groups(value: str, count: int = 1, size: int = 1) -> str:
    return f"replica_groups = dense<{value}> : tensor<{count}x{size}xi64>"


@pytest.mark.parametrize(
    ("name", "attributes", "body"),
    [
        ("all_reduce", "", BODY),
        ("all_gather", "all_gather_dim = 0 : i64, ", ""),
        ("reduce_scatter", "scatter_dimension = 0 : i64, ", BODY),
        ("all_to_all", "split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 1 : i64, ", ""),
        ("collective_broadcast", "", ""),
    ],
)
def test_one_device(name: str, attributes: str, body: str) -> None:
    (result,) = run(import_text(program(name, attributes + groups("0"), body)), "main", [X])
    np.testing.assert_array_equal(result, X)
    for wrong, reason in ((groups("[[0, 1]]", 1, 2), "groups of 2 devices"), (groups("1"), "there is one")):
        with pytest.raises(GradirError, match=reason) as caught:
            import_text(program(name, attributes + wrong, body))
        assert caught.value.code == "GR120"


def test_permutation_of_one_device() -> None:
    (sent,) = run(import_text(program("collective_permute", "source_target_pairs = dense<0> : tensor<1x2xi64>")), "main", [X])
    np.testing.assert_array_equal(sent, X)
    (nobody,) = run(import_text(program("collective_permute", "source_target_pairs = dense<> : tensor<0x2xi64>")), "main", [X])
    np.testing.assert_array_equal(nobody, 0 * X)
    with pytest.raises(GradirError, match="there is one"):
        import_text(program("collective_permute", "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>"))


@pytest.mark.parametrize("name", ["partition_id", "replica_id"])
def test_the_device_is_the_first(name: str) -> None:
    text = f"func.func public @main() -> tensor<ui32> {{\n%r = stablehlo.{name} : tensor<ui32>\nreturn %r : tensor<ui32>\n}}\n"
    (result,) = run(import_text(text), "main", [])
    assert result == 0
