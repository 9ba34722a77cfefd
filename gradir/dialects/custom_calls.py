"""Functions that programs call by name (`nd.custom_call`): what the compiler has to know of each.

One row per name: its meaning on numpy arrays, the types of its results, its derivative, its effects, the targets that have it. Our own
libraries (`lapack.*`, `fft`) are rows that load on first use; users add rows with `gradir.register_custom_call`. How a name is found when a
compiled program runs is `gradir.runtime.library`: a saved artefact needs no compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute

from gradir.dialects.types import ints

Config: TypeAlias = Mapping[str, Any]
"""Numbers, texts, truth values, and lists of them."""

Meaning: TypeAlias = Callable[..., Sequence[Any]]
"""`meaning(config, result_dtypes_and_shapes, *arrays)` -> one array per result."""

Infer: TypeAlias = Callable[[Sequence[Attribute], Config], Sequence[Attribute]]
"""`infer(operand types, config)` -> result types; `ValueError` says what is wrong with the operands."""


@dataclass(frozen=True)
class CustomCall:
    """What is known of the function called `name`.

    `vjp` is a derivative rule as `gradir.autodiff.registry` has them; None: an active call is an error. `effects`: calls keep their place
    and are never removed. `targets`: the kinds of machine that have it. `version` changes whenever a compiled program could change.
    """

    name: str
    evaluate: Meaning
    infer: Infer | None = None
    vjp: Any = None
    effects: bool = False
    targets: frozenset[str] = frozenset({"cpu"})
    version: str = ""


CALLS: dict[str, CustomCall] = {}
"""The rows; `find` loads those that come with us."""

FAMILIES: dict[str, str] = {
    "lapack": "gradir.dialects.nd.meaning.lapack",
    "fft": "gradir.dialects.nd.meaning.fourier",
    "print": "gradir.dialects.nd.meaning.effects",
    "blas": "gradir.dialects.nd.meaning.blas",
}
"""First word of a name -> the module whose import adds the rows; a plugin may add its own."""


def define(call: CustomCall) -> None:
    """Add or replace a row."""
    CALLS[call.name] = call


def find(name: str) -> CustomCall | None:
    """The row called `name`."""
    found = CALLS.get(name)
    family = FAMILIES.get(name.partition(".")[0])
    if found is None and family is not None:
        import_module(family)
        found = CALLS.get(name)
    return found


def known() -> str:
    """The names that a program may call, for messages."""
    return ", ".join(sorted(CALLS)) or "none"


# -- configurations: Python values as attributes and back


def to_attribute(value: Any) -> Attribute:
    """A configuration value as an attribute; `TypeError` for what is none of text, number, truth value, or a list or mapping of them."""
    if isinstance(value, Attribute):
        return value
    if isinstance(value, bool):
        return IntegerAttr(int(value), i1)
    if isinstance(value, int):
        return IntegerAttr(value, i64)
    if isinstance(value, float):
        return FloatAttr(value, f64)
    if isinstance(value, str):
        return StringAttr(value)
    if isinstance(value, Mapping):
        return config_attribute(cast("Config", value))
    if isinstance(value, list | tuple):
        return ArrayAttr([to_attribute(v) for v in cast("Sequence[Any]", value)])
    raise TypeError(f"a {type(value).__name__} in the configuration of a custom call")


def config_attribute(config: Config) -> DictionaryAttr:
    """A whole configuration, its keys sorted: equal ones give equal text."""
    return DictionaryAttr({key: to_attribute(config[key]) for key in sorted(config)})


def to_value(attribute: Attribute) -> Any:
    """A configuration value as Python has it; attributes of other kinds as their text."""
    if isinstance(attribute, IntegerAttr):
        number = cast("IntegerAttr[Any]", attribute)
        is_bool = isinstance(number.type, IntegerType) and number.type.width.data == 1
        return bool(number.value.data) if is_bool else number.value.data
    if isinstance(attribute, FloatAttr):
        return cast("FloatAttr[Any]", attribute).value.data
    if isinstance(attribute, StringAttr):
        return attribute.data
    if isinstance(attribute, DictionaryAttr):
        return config_value(attribute)
    if isinstance(attribute, ArrayAttr):
        return [to_value(v) for v in cast("ArrayAttr[Attribute]", attribute).data]
    if isinstance(attribute, DenseArrayBase):
        return list(ints(attribute))
    if isinstance(attribute, UnitAttr):
        return True
    return str(attribute)


def config_value(config: DictionaryAttr | None) -> dict[str, Any]:
    """A configuration as a dictionary of Python values."""
    return {} if config is None else {key: to_value(value) for key, value in config.data.items()}
