"""Tensor types as the compiler handles them: interned, with named sizes.

A named size is a string in Python and a `?` plus a name in the tensor's encoding in text, `tensor<?x64xf32, ["b", ""]>`: equal shapes
are equal types. A name may be computed from others, `2*b+1` (see `gradir.size_algebra`). A `?` without a name is `None`. Relies on
xDSL's builtin types only; numpy loads on first use of a dtype.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast, get_args

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ArrayAttr,
    BFloat16Type,
    ComplexType,
    DenseArrayBase,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

import gradir.ir.quick  # noqa: F401  # pyright: ignore[reportUnusedImport]  (xDSL's methods, quicker)
from gradir import size_algebra

if TYPE_CHECKING:
    import numpy as np

Dim: TypeAlias = int | str | None
Shape: TypeAlias = tuple[Dim, ...]

FLOATS: tuple[Attribute, ...] = (f64, f32, f16, bf16)
F8: tuple[Attribute, ...] = (Float8E4M3FNType(), Float8E5M2Type())
COMPLEXES: tuple[Attribute, ...] = (ComplexType(f64), ComplexType(f32))
NARROW_CLASSES = (Float16Type, BFloat16Type, Float8E4M3FNType, Float8E5M2Type)
"""Floats that are computed in f32."""

_FLOAT_CLASSES = (Float64Type, Float32Type, *NARROW_CLASSES)
_SCALAR_CLASSES = frozenset((*get_args(AnyFloat), IntegerType, IndexType))
"""Looked up by class: `isinstance` asks each class of a union in turn, and each answers slowly."""

_SHAPE = "_gradir_shape"
_REAL_OF: dict[Attribute, Attribute] = dict(zip(COMPLEXES, (f64, f32)))
_COMPLEX_OF: dict[Attribute, Attribute] = {real: elem for elem, real in _REAL_OF.items()}


@lru_cache(maxsize=1 << 14)
def _tensor(elem: Attribute, shape: Shape) -> TensorType[Any]:
    sizes = [n if isinstance(n, int) else DYNAMIC_INDEX for n in shape]
    if any(isinstance(n, str) for n in shape):
        return TensorType(elem, sizes, ArrayAttr([StringAttr(str(n) if isinstance(n, str) else "") for n in shape]))
    return TensorType(elem, sizes)


def tensor(elem: Attribute, shape: Iterable[Dim] = ()) -> TensorType[Any]:
    """The tensor type of that element type and shape; a string is a named size, None an anonymous one."""
    return _tensor(elem, tuple(shape))


def _shape_of_type(kind: TensorType[Any]) -> Shape:
    sizes = kind.get_shape()
    names = kind.encoding
    if not isinstance(names, ArrayAttr):
        return tuple(None if n == DYNAMIC_INDEX else n for n in sizes)
    texts = [name.data if isinstance(name, StringAttr) else "" for name in cast("ArrayAttr[Attribute]", names)]
    for text in filter(None, texts):
        _check_size(text, kind)
    return tuple(n if n != DYNAMIC_INDEX else (text or None) for n, text in zip(sizes, texts))


def _check_size(text: str, kind: Attribute) -> None:
    """VerifyException for the text of a size that is none, or not the one way to write it: equal sizes are equal texts."""
    try:
        canonical = size_algebra.canonical(text)
    except ValueError:
        raise VerifyException(f'"{text}" is no size, in {kind}; expected a name such as b, or a text such as 2*b+1') from None
    if canonical != text:
        raise VerifyException(f'the size "{text}" is written "{canonical}", in {kind}')


def shape_of(value: SSAValue | Attribute) -> Shape:
    """Sizes of a tensor value or type: an int, a name, or None for `?` without a name."""
    kind = value.type if isinstance(value, SSAValue) else value
    found = kind.__dict__.get(_SHAPE)
    if found is None:
        found = _shape_of_type(cast("TensorType[Any]", kind))
        object.__setattr__(kind, _SHAPE, found)  # beside the fields of a frozen dataclass, which alone compare and hash
    return found


def static_shape(value: SSAValue | Attribute) -> tuple[int, ...]:
    """Sizes of a tensor value or type whose sizes are all numbers."""
    shape = shape_of(value)
    sizes = tuple(n for n in shape if isinstance(n, int))
    assert len(sizes) == len(shape), f"run-time sizes in {shape_text(shape)}"
    return sizes


def element_of(value: SSAValue | Attribute) -> Attribute:
    """Element type of a tensor value or type; of a scalar, its own type."""
    kind = value.type if isinstance(value, SSAValue) else value
    return kind if type(kind) in _SCALAR_CLASSES else kind.element_type  # pyright: ignore[reportAttributeAccessIssue]  (tensors have one)


def with_size(shape: Shape, dim: int, size: Dim) -> Shape:
    """`shape` with another size of dimension `dim`."""
    return (*shape[:dim], size, *shape[dim + 1 :])


def rank_of(value: SSAValue | Attribute) -> int:
    """Number of dimensions of a tensor value or type."""
    return len(shape_of(value))


def is_static(value: SSAValue | Attribute) -> bool:
    """True when every size is a number."""
    return all(isinstance(n, int) for n in shape_of(value))


def is_float(elem: Attribute) -> bool:
    """True of f64, f32, f16, bf16, f8E4M3FN, f8E5M2."""
    return isinstance(elem, _FLOAT_CLASSES)


def is_integer(elem: Attribute) -> bool:
    """True of the integers that arrays hold: i8 to i64 (signless, read as signed) and ui8 to ui64."""
    return isinstance(elem, IntegerType) and elem.width.data in (8, 16, 32, 64) and elem.signedness.data != Signedness.SIGNED


def is_unsigned(elem: Attribute) -> bool:
    """True of `uiN`."""
    return isinstance(elem, IntegerType) and elem.signedness.data is Signedness.UNSIGNED


def is_bool(elem: Attribute) -> bool:
    """True of `i1`."""
    return elem == i1


def is_complex(elem: Attribute) -> bool:
    """True of complex<f32>, complex<f64>."""
    return isinstance(elem, ComplexType) and elem in _REAL_OF


def has_derivative(kind: Attribute) -> bool:
    """True of the types whose values can move: tensors of real or complex floats."""
    return isinstance(kind, TensorType) and (is_float(kind.element_type) or is_complex(kind.element_type))


def is_inexact(elem: Attribute) -> bool:
    """True of floats and complex numbers: NaN is among them, and arithmetic rounds."""
    return is_float(elem) or is_complex(elem)


def is_number(elem: Attribute) -> bool:
    """True of floats and integers wider than one bit."""
    return is_float(elem) or is_integer(elem)


def real_of(elem: Attribute) -> Attribute:
    """The element type of the real part: f32 of complex<f32>; a real type is its own."""
    return _REAL_OF.get(elem, elem)


def complex_of(elem: Attribute) -> Attribute:
    """complex<f32> of f32, complex<f64> of f64; KeyError of a type that has no complex numbers."""
    return _COMPLEX_OF[elem]


def sizes_agree(a: Dim, b: Dim) -> bool:
    """False when the two sizes are known to differ, or carry different names; an anonymous `?` agrees with anything.

    `b-1` agrees with `max(b-1,0)`: who leaves the bound out says that it holds.
    """
    if a == b or a is None or b is None:
        return True
    return not isinstance(a, int) and not isinstance(b, int) and (a == f"max({b},0)" or b == f"max({a},0)")


@lru_cache(maxsize=1 << 12)
def _i64_array(values: tuple[int, ...]) -> DenseArrayBase[Any]:
    return DenseArrayBase.from_list(i64, list(values))


def i64_array(values: Iterable[int]) -> DenseArrayBase[Any]:
    """`array<i64: ...>`, interned."""
    return _i64_array(tuple(values))


@lru_cache(None)
def segments(*counts: int) -> DenseArrayBase[Any]:
    """The property `operandSegmentSizes`, for `Op.create`: of a linalg op, the numbers of inputs and outputs."""
    return DenseArrayBase.from_list(i32, list(counts))


@lru_cache(maxsize=1 << 12)
def i64_attr(value: int) -> IntegerAttr[Any]:
    """`value : i64`, interned."""
    return IntegerAttr(value, i64)


def reassociation(groups: Iterable[Iterable[int]]) -> ArrayAttr[Any]:
    """`[[0, 1], [2]]`: which dimensions a collapse joins, or an expansion splits."""
    return ArrayAttr([ArrayAttr([i64_attr(dim) for dim in group]) for group in groups])


def groups_of(attribute: Attribute) -> list[tuple[int, ...]]:
    """The numbers of a reassociation."""
    rows = cast("ArrayAttr[ArrayAttr[IntegerAttr[Any]]]", attribute)
    return [tuple(dim.value.data for dim in group) for group in rows]


@lru_cache(maxsize=1 << 12)
def ints(array: Attribute) -> tuple[int, ...]:
    """The numbers of an `array<i64: ...>`."""
    return tuple(cast("DenseArrayBase[Any]", array).get_values())


@cache
def numpy_dtype(elem: Attribute) -> np.dtype[Any]:
    """The numpy dtype that stores this element type: `i1` as bool, `index` as int64, bf16 from ml_dtypes."""
    import numpy as np  # lazy: a tool that only reads text never pays for numpy

    if isinstance(elem, BFloat16Type):
        import ml_dtypes  # lazy: same reason

        return np.dtype(ml_dtypes.bfloat16)
    if isinstance(elem, Float8E4M3FNType | Float8E5M2Type):
        import ml_dtypes  # lazy: same reason

        return np.dtype(ml_dtypes.float8_e4m3fn if isinstance(elem, Float8E4M3FNType) else ml_dtypes.float8_e5m2)
    if isinstance(elem, IntegerType):
        if elem.width.data == 1:
            return np.dtype(np.bool_)
        return np.dtype(f"{'u' if is_unsigned(elem) else ''}int{elem.width.data}")
    if isinstance(elem, IndexType):
        return np.dtype(np.int64)
    if isinstance(elem, ComplexType):
        return np.dtype(np.complex64 if real_of(elem) == f32 else np.complex128)
    bits = {Float64Type: 64, Float32Type: 32, Float16Type: 16}[type(elem)]  # pyright: ignore[reportArgumentType]  a KeyError names the type
    return np.dtype(f"float{bits}")


@cache
def _element_types() -> dict[str, Attribute]:
    table: dict[str, Attribute] = {"bool": i1, "float64": f64, "float32": f32, "float16": f16, "bfloat16": bf16}
    table |= {"float8_e4m3fn": F8[0], "float8_e5m2": F8[1]}
    table |= {"complex128": COMPLEXES[0], "complex64": COMPLEXES[1]}
    for width in (8, 16, 32, 64):
        table[f"int{width}"] = IntegerType(width)
        table[f"uint{width}"] = IntegerType(width, Signedness.UNSIGNED)
    return table


def element_type(dtype: Any) -> Attribute:
    """The element type of a numpy dtype (or of what `numpy.dtype` accepts); KeyError when there is none."""
    name = getattr(dtype, "name", None)
    if name is None:
        import numpy as np  # lazy, as above

        name = np.dtype(dtype).name
    return _element_types()[name]


def type_text(kind: Attribute) -> str:
    """How messages show a type."""
    return str(kind)


def shape_text(shape: Sequence[Dim]) -> str:
    """`[2, b, ?]`, how messages show a shape."""
    return "[" + ", ".join("?" if n is None else str(n) for n in shape) + "]"
