"""`rng_bit_generator` draws what XLA's CPU draws from the same state."""

from __future__ import annotations

import numpy as np
import pytest

import gradir
from gradir.driver.compile import compile_module
from gradir.frontends.stablehlo import import_text
from gradir.reference import run

STATE = np.array([7, (1 << 64) - 1], np.uint64)
DRAWN = [
    ("THREE_FRY", "ui32", (3,), [0x7, 0x1], [0xD03E9607, 0x5F522293, 0xE892296A]),
    ("THREE_FRY", "ui32", (), [0x7, 0x0], [0xD03E9607]),
    ("THREE_FRY", "ui16", (2, 2), [0x7, 0x1], [0x9607, 0x296A, 0x2293, 0x53B9]),
    ("THREE_FRY", "ui64", (3,), [0x7, 0x2], [0x5F522293D03E9607, 0xBC3B53B9E892296A, 0x4F8B93D0B0B8A12F]),
    ("THREE_FRY", "ui8", (5,), [0x7, 0x2], [0x7, 0x93, 0x6A, 0xB9, 0x2F]),
    ("PHILOX", "ui32", (3,), [0x7, 0x0], [0xE404EA31, 0xAE9E750F, 0xF06E4C03]),
    ("PHILOX", "ui32", (), [0x7, 0x0], [0xE404EA31]),
    ("PHILOX", "ui16", (2, 2), [0x7, 0x0], [0xEA31, 0x750F, 0x4C03, 0x1289]),
    ("PHILOX", "ui64", (3,), [0x7, 0x1], [0xAE9E750FE404EA31, 0x33A71289F06E4C03, 0x1D55AD4CA2221DCE]),
    ("DEFAULT", "ui8", (5,), [0x7, 0x1], [0x31, 0xF, 0x3, 0x89, 0xCE]),
    ("DEFAULT", "i32", (3,), [0x7, 0x0], [0xE404EA31, 0xAE9E750F, 0xF06E4C03]),
]


def text(algorithm: str, element: str, shape: tuple[int, ...], state: int = 2) -> str:
    kind = f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"
    words = f"tensor<{state}xui64>"
    return (
        f"func.func public @main(%s: {words}) -> ({words}, {kind}) {{\n"
        f"  %t, %r = stablehlo.rng_bit_generator %s, algorithm = {algorithm} : ({words}) -> ({words}, {kind})\n"
        f"  return %t, %r : {words}, {kind}\n}}\n"
    )


@pytest.mark.parametrize(("algorithm", "element", "shape", "state", "bits"), DRAWN)
def test_the_bits_of_xla(algorithm: str, element: str, shape: tuple[int, ...], state: list[int], bits: list[int]) -> None:
    module = import_text(text(algorithm, element, shape))
    for moved, found in (run(module, "main", [STATE]), compile_module(module, cache=False)["main"](STATE)):
        assert np.asarray(moved).tolist() == state
        drawn = np.asarray(found)
        assert drawn.shape == shape
        assert drawn.view(f"u{drawn.itemsize}").ravel().tolist() == bits


def test_three_words_count_to_128_bits() -> None:
    module = import_text(text("PHILOX", "ui32", (8,), state=3))
    moved, first = run(module, "main", [np.array([7, (1 << 64) - 1, 5], np.uint64)])
    assert moved.tolist() == [7, 1, 6]
    _, second = run(module, "main", [np.array([7, 0, 6], np.uint64)])
    assert first[4:].tolist() == second[:4].tolist()


@pytest.mark.parametrize(
    ("algorithm", "element", "state", "reason"),
    [("THREE_FRY", "f32", 2, "random bits of element type f32"), ("THREE_FRY", "ui32", 3, "a state of type tensor<3xui64>")],
)
def test_what_is_not_supported(algorithm: str, element: str, state: int, reason: str) -> None:
    with pytest.raises(gradir.GradirError, match="rng_bit_generator") as caught:
        import_text(text(algorithm, element, (2,), state))
    assert caught.value.code == "GR120"
    assert reason in caught.value.message
