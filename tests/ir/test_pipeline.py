"""The grammar of pipelines and the options of passes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gradir.errors import GradirError
from gradir.ir.options import configure
from gradir.ir.passes import Pass
from gradir.ir.pipeline import Nested, PassRequest, parse_pipeline, pipeline_text


def test_both_syntaxes_are_one_language() -> None:
    flat = parse_pipeline("canonicalize,func.func(cse,dce)")
    assert pipeline_text(parse_pipeline("builtin.module(canonicalize,func.func(cse,dce))")) == pipeline_text(flat)
    assert isinstance(flat[0], PassRequest) and isinstance(flat[1], Nested) and flat[1].anchor == "func.func"
    assert parse_pipeline("") == () and parse_pipeline(" builtin.module( ) ") == ()


def test_values() -> None:
    (request,) = parse_pipeline(
        'p{a b=true c=false d=3 e=-2.5 f=1e-3 g=word h="a \\"b\\"" i=1,2 j=[] k=[x] l={m=1 n} sm=sm_90 size=2x3 on=cuda:sm_90}'
    )
    assert isinstance(request, PassRequest)
    assert request.options == {
        "a": True, "b": True, "c": False, "d": 3, "e": -2.5, "f": 1e-3, "g": "word", "h": 'a "b"',
        "i": (1, 2), "j": (), "k": ("x",), "l": {"m": 1, "n": True}, "sm": "sm_90", "size": "2x3", "on": "cuda:sm_90",
    }  # fmt: skip
    assert parse_pipeline(pipeline_text([request]))[0].options == request.options


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("a,", "expected the name of a pass", 2),
        (",a", "expected the name of a pass", 0),
        ("a b", "expected ',' or the end", 2),
        ("a)", "expected ',' or the end", 1),
        ("f(a", r"expected '\)'", 3),
        ("a{x", "expected the name of an option or '}'", 3),
        ("a{x=}", "expected a value", 4),
        ("a{x=1 x=2}", "option 'x' is given twice", 6),
        ("a{x=[1 2]}", "expected ','", 7),
        ('a{x="y}', "text without its closing quote", 4),
        ("a;b", "unexpected character ';'", 1),
    ],
)
def test_errors_point_at_the_place(text: str, message: str, column: int) -> None:
    with pytest.raises(GradirError, match=message) as caught:
        parse_pipeline(text)
    assert caught.value.code == "GR033"
    assert caught.value.found.splitlines()[1] == " " * (len("  found: ") + column) + "^"


@dataclass(frozen=True)
class Example(Pass):
    NAME = "example"

    text: str = ""
    count: int = 0
    scale: float = 1.0
    fast: bool = False
    sizes: tuple[int, ...] = ()
    maybe: int | None = None


def test_options_become_fields() -> None:
    made = configure(Example, {"text": 3, "count": 2, "scale": 4, "fast": True, "sizes": 7, "maybe": 1})
    assert made == Example("3", 2, 4.0, True, (7,), 1)
    assert configure(Example, {"sizes": (1, 2)}) == Example(sizes=(1, 2))


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"count": "x"}, "int"), ({"count": True}, "int"), ({"fast": 1}, "bool"), ({"sizes": ("a",)}, "int"), ({"text": (1, 2)}, "str")],
)
def test_values_of_another_type(options: dict[str, object], expected: str) -> None:
    with pytest.raises(GradirError) as caught:
        configure(Example, options)
    assert caught.value.code == "GR034" and caught.value.expected == expected


def test_unknown_option_suggests_the_nearest() -> None:
    with pytest.raises(GradirError, match="pass 'example' has no option 'cuont'") as caught:
        configure(Example, {"cuont": 1})
    assert caught.value.hint == "did you mean 'count'?" and "text, count" in caught.value.expected
