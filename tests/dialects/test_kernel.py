"""Schedule attributes: parse, print, fields, and the errors of their parser."""

from io import StringIO

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from gradir.dialects.kernel import KINDS, ContractionAttr, ElementwiseAttr, Kernel, Schedule, TemplateAttr


def parse(text: str) -> Schedule:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Kernel)
    attribute = Parser(context, text).parse_attribute()
    assert isinstance(attribute, Schedule)
    return attribute


def text_of(attribute: Schedule) -> str:
    out = StringIO()
    Printer(out).print_attribute(attribute)
    return out.getvalue()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_kinds_round_trip_without_fields(kind: str) -> None:
    attribute = parse(f"#kernel.{kind}<>")
    assert type(attribute) is KINDS[kind] and attribute.kind == kind
    assert text_of(attribute) == f"#kernel.{kind}<>"
    assert parse(text_of(attribute)) == attribute


def test_fields_round_trip_in_their_own_order() -> None:
    attribute = parse("#kernel.contraction<parallel = [0], tile = [6, 16], block = [112, 512, 256], pack = []>")
    assert attribute == ContractionAttr.of(tile=[6, 16], block=[112, 512, 256], parallel=[0])
    assert text_of(attribute) == "#kernel.contraction<tile = [6, 16], block = [112, 512, 256], parallel = [0]>"
    assert attribute.field("tile") == (6, 16) and attribute.field("pack") == ()


def test_a_field_that_the_kind_lacks_reads_as_empty() -> None:
    assert ElementwiseAttr.of(tile=[8]).field("pack") == ()
    assert TemplateAttr.of().field("tile") == ()


def test_errors_name_the_field() -> None:
    with pytest.raises(ParseError, match=r"#kernel.rows has no field 'pack', expected one of: tile, block, parallel"):
        parse("#kernel.rows<pack = [1]>")
    with pytest.raises(ParseError, match=r"field 'tile' is given twice"):
        parse("#kernel.loops<tile = [1], tile = [2]>")
    with pytest.raises(ValueError, match=r"kernel.template has no field tile"):
        TemplateAttr.of(tile=[1])
