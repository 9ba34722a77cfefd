"""Which element types an op takes, found by asking its verifier: the first sample's op, rebuilt with each element type in turn."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, f32, f64
from xdsl.ir import Attribute, Block, Operation
from xdsl.utils.exceptions import VerifyException

from gradir.dialects.facets import OpClass, samples_of
from gradir.dialects.types import F8, FLOATS, complex_of, element_of, is_complex, real_of, shape_of, tensor
from gradir.ir.text import parse_module

ELEMENTS: tuple[Attribute, ...] = (
    *FLOATS,
    *F8,
    *(IntegerType(width) for width in (8, 16, 32, 64)),
    *(IntegerType(width, Signedness.UNSIGNED) for width in (8, 16, 32, 64)),
    IntegerType(1),
    *(complex_of(part) for part in (f32, f64)),
)
"""Every element type of level 1."""


def element_types(op: OpClass) -> tuple[str, ...]:
    """Element types of the first operand (of the result, for an op without tensor operands) that the verifier takes.

    What has this element type in the sample changes along, results of a complex number's parts too.
    """
    samples = samples_of(op)
    if not samples:
        return ()
    first = _example(op, samples[0].text)
    old = _element(first)
    found = {old} if old is not None else set[Attribute]()
    if old is not None and not first.regions:
        found |= {element for element in ELEMENTS if _takes(first, old, element)}
    if len(found) <= 1:  # attributes or a region hold numbers of the type: what the samples show
        others = [_element(_example(op, sample.text)) for sample in samples[1:]]
        found |= {element for element in others if element is not None}
    return tuple(str(element) for element in ELEMENTS if element in found)


def _example(op: OpClass, text: str) -> Operation:
    return next(inner for inner in parse_module(text).walk() if isinstance(inner, op))


def _element(op: Operation) -> Attribute | None:
    return next((element_of(v) for v in (*op.operands, *op.results) if isinstance(v.type, TensorType)), None)


def _takes(example: Operation, old: Attribute, element: Attribute) -> bool:
    operands = [_with(value.type, old, element) for value in example.operands]
    results = [result.type for result in example.results]
    wanted = [_with(kind, old, element) for kind in results]
    choices = [wanted]
    if is_complex(element) and operands != [value.type for value in example.operands]:  # the absolute value is real
        choices.append([_with(kind, old, real_of(element)) for kind in results])
    return any(_verifies(example, operands, choice) for choice in choices)


def _with(kind: Attribute, old: Attribute, new: Attribute) -> Attribute:
    return tensor(new, shape_of(kind)) if isinstance(kind, TensorType) and element_of(kind) == old else kind


def _verifies(example: Operation, operands: Sequence[Attribute], results: Sequence[Attribute]) -> bool:
    made = type(example).create(operands=Block(arg_types=operands).args, result_types=results, properties=example.properties)
    try:
        made.verify_()
    except VerifyException:
        return False
    return True
