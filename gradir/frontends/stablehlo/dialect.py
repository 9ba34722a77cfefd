"""The dialects of a StableHLO module, as far as an importer needs them: names, attributes, short forms.

No op has a verifier here: what the program means is decided where it is converted, and level 1 is verified then. An op of StableHLO that
is not in the table is still read in its generic form, and reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Self, cast

from xdsl.context import Context
from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import Builtin, IntegerAttr
from xdsl.ir import Attribute, Dialect, Operation
from xdsl.irdl import traits_def
from xdsl.parser import Parser
from xdsl.traits import IsTerminator

from gradir.dialects.registry import DIALECTS, load
from gradir.dialects.types import ints
from gradir.frontends.stablehlo import attributes, syntax
from gradir.frontends.stablehlo.blobs import Bytes
from gradir.frontends.stablehlo.syntax import Form


class StablehloOp(Operation):
    """An op that is read and converted, nothing else; `form` parses its short form."""

    traits = traits_def()
    form: ClassVar[Form] = staticmethod(syntax.parse_common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return cast("Self", cls.form(cls, parser))


def attribute(op: Operation, name: str) -> Attribute | None:
    """A property or attribute of `op`, wherever the text put it."""
    found = op.properties.get(name)
    return op.attributes.get(name) if found is None else found


def numbers(op: Operation, name: str) -> tuple[int, ...] | None:
    """The numbers of an array attribute; None where it is left out."""
    found = attribute(op, name)
    return None if found is None else ints(found)


def number(op: Operation, name: str, default: int = 0) -> int:
    """The number of an integer attribute."""
    found = attribute(op, name)
    return found.value.data if isinstance(found, IntegerAttr) else default


FORMS: dict[str, Form] = {
    "compare": syntax.parse_compare,
    "complex": syntax.parse_complex,
    "slice": syntax.parse_slice,
    "dot_general": syntax.parse_dot_general,
    "convolution": syntax.parse_convolution,
    "constant": syntax.parse_constant,
    "custom_call": syntax.parse_custom_call,
    "composite": syntax.parse_composite,
    "while": syntax.parse_while,
    "reduce": syntax.parse_reduce,
}

STABLEHLO_NAMES: list[str] = re.findall(
    r"\w+",
    """
abs add after_all all_gather all_reduce all_to_all and atan2 batch_norm_grad batch_norm_inference batch_norm_training bitcast_convert
broadcast broadcast_in_dim case cbrt ceil cholesky clamp collective_broadcast collective_permute compare complex composite concatenate
constant convert convolution cosine count_leading_zeros create_token cross_replica_sum custom_call divide dot dot_general
dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice einsum
exponential exponential_minus_one fft floor gather get_dimension_size get_tuple_element if imag infeed iota is_finite log log_plus_one
logistic map maximum minimum multiply negate not optimization_barrier or outfeed pad partition_id popcnt power real real_dynamic_slice
recv reduce reduce_precision reduce_scatter reduce_window remainder replica_id reshape reverse rng rng_bit_generator round_nearest_afz
round_nearest_even rsqrt scatter select select_and_scatter send set_dimension_size shift_left shift_right_arithmetic
shift_right_logical sign sine slice sort sqrt subtract tan tanh torch_index_select transpose triangular_solve tuple unary_einsum
uniform_dequantize uniform_quantize while xor
""",
)

CHLO_NAMES: list[str] = re.findall(
    r"\w+",
    """
acos acosh asin asin_acos_kernel asinh atan atanh bessel_i1e broadcast_add broadcast_and broadcast_atan2 broadcast_compare
broadcast_complex broadcast_divide broadcast_maximum broadcast_minimum broadcast_multiply broadcast_next_after broadcast_or
broadcast_polygamma broadcast_power broadcast_remainder broadcast_select broadcast_shift_left broadcast_shift_right_arithmetic
broadcast_shift_right_logical broadcast_subtract broadcast_xor broadcast_zeta conj constant_like cosh digamma erf erf_inv erfc is_inf
is_neg_inf is_pos_inf lgamma next_after polygamma ragged_dot scan sinh square tan top_k zeta
""",
)


def _class(name: str, form: Form = syntax.parse_common, *, terminator: bool = False) -> type[Operation]:
    body: dict[str, object] = {"name": name, "form": staticmethod(form), "__doc__": f"`{name}`"}
    if terminator:
        body["traits"] = traits_def(IsTerminator())
    return type(name.replace(".", "_"), (StablehloOp,), body)


Stablehlo = Dialect(
    "stablehlo",
    [
        *(_class(f"stablehlo.{name}", FORMS.get(name, syntax.parse_common)) for name in STABLEHLO_NAMES),
        _class("stablehlo.return", terminator=True),
    ],
    [*attributes.STABLEHLO_ATTRIBUTES, attributes.Token],
)
Chlo = Dialect("chlo", [_class(f"chlo.{name}") for name in CHLO_NAMES], attributes.CHLO_ATTRIBUTES)
Sdy = Dialect(
    "sdy",
    [
        _class("sdy.mesh", syntax.parse_mesh),
        _class("sdy.sharding_constraint", syntax.parse_sharding_constraint),
        _class("sdy.return", terminator=True),
    ],
    [],
)


class Resources(OpAsmDialectInterface):
    """The resources of one text: digits as xDSL keeps them, and the large ones that were taken out of the text before."""

    def __init__(self, blobs: Mapping[str, Bytes]) -> None:
        super().__init__()
        self.blobs = blobs


def stablehlo_context(blobs: Mapping[str, Bytes] | None = None) -> Context:
    """A context that reads what JAX prints; ops and attributes of unknown dialects (`mhlo`, `jax`, ..) are kept as they are."""
    context = Context(allow_unregistered=True)
    context.load_dialect(Dialect("builtin", list(Builtin.operations), list(Builtin.attributes), [Resources(blobs or {})]))
    for name in DIALECTS:
        if name != "builtin":  # ours holds the resources of one text: they end with it
            context.register_dialect(name, partial(load, name))
    for dialect in (Stablehlo, Chlo, Sdy):
        context.load_dialect(dialect)
    return context


def resource(context: Context, key: str) -> bytes | Bytes | None:
    """The bytes of a resource of the text that was read with `context`: `"0x"`, four bytes of alignment, the elements."""
    storage = context.get_dialect("builtin").get_interface(Resources)
    if storage is None:
        return None
    if key in storage.blobs:
        return storage.blobs[key]
    spelled = storage.lookup(key)
    return bytes.fromhex(spelled[10:]) if spelled else None
