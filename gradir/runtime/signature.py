"""Checking what a caller passes against a function's signature: every mistake of a run-time input is found and named here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradir.errors import GradirError
from gradir.runtime.buffer import Buffer, pool_array
from gradir.runtime.cuda.array import DeviceArray
from gradir.runtime.dlpack import from_dlpack
from gradir.runtime.dtypes import dtype_name, numpy_dtype
from gradir.runtime.failures import misuse
from gradir.runtime.manifest import FunctionSpec, TensorSpec
from gradir.runtime.run_time_sizes import CallSizes

Array = np.ndarray[Any, np.dtype[Any]]


def check_inputs(spec: FunctionSpec, values: Sequence[Any]) -> tuple[list[Any], CallSizes]:
    """Contiguous, aligned arrays for `values` (copied only when they are not), and the sizes that they bind.

    Raises `GradirError` RT001 for their number, RT002 for a shape, RT003 for an element type, RT004 when one name has two sizes,
    RT009 for a size that the program does not allow, RT005 for something that is no array.
    """
    if len(values) != len(spec.inputs):
        raise wrong_count(spec, len(values))
    sizes = CallSizes(spec)
    arrays = [
        value if _is_right(tensor, value) else _check_input(spec, tensor, value, sizes)
        for tensor, value in zip(spec.inputs, values, strict=True)
    ]
    sizes.finish()
    return arrays, sizes


def wrong_count(spec: FunctionSpec, found: int) -> GradirError:
    """The error for a call with another number of inputs."""
    return misuse(
        spec,
        "RT001",
        "wrong number of inputs",
        f"{len(spec.inputs)} inputs: " + ", ".join(f"{t.name}: {t}" for t in spec.inputs),
        f"{found} inputs",
        "pass one array per input",
    )


def make_outputs(spec: FunctionSpec, sizes: CallSizes) -> list[Array | None]:
    """New arrays from the pool for the results, None for one that lies in an argument's memory; `GradirError` RT008 when a size cannot be
    known before the call."""
    aliased = {result for _, result in spec.aliases}
    return [
        None if k in aliased else pool_array(output_shape(spec, tensor, sizes), numpy_dtype(tensor.dtype))
        for k, tensor in enumerate(spec.outputs)
    ]


def check_outputs(spec: FunctionSpec, given: Sequence[Any], sizes: CallSizes) -> list[Array]:
    """The arrays of `out=`, after checking that results can be written there (`GradirError` RT006)."""
    if len(given) != len(spec.outputs):
        raise misuse(spec, "RT006", "wrong number of arrays in out=", f"{len(spec.outputs)} arrays", str(len(given)), "one per result")
    arrays: list[Array] = []
    for index, (tensor, value) in enumerate(zip(spec.outputs, given, strict=True)):
        array = _as_output(value)
        what = f"output {index} '{tensor.name}'"
        if not isinstance(array, np.ndarray):
            raise misuse(spec, "RT006", f"{what} is not an array", str(tensor), type(value).__name__, "pass a numpy array or a Buffer")
        found = _array_text(array)
        if array.dtype != numpy_dtype(tensor.dtype) or not _shape_fits(tensor, array.shape, sizes):
            raise misuse(spec, "RT006", f"{what} has another shape or element type", _expected_text(tensor, sizes), found, "see expected")
        if not array.flags.writeable:
            raise misuse(spec, "RT006", f"{what} is read-only", "a writable array", f"read-only {found}", "pass a writable array")
        for other, earlier in enumerate(arrays):
            if _share_bytes(array, earlier):
                hint = "pass an array of its own for each result"
                raise misuse(spec, "RT006", f"{what} shares memory with output {other}", "arrays that do not overlap", found, hint)
        arrays.append(array)
    return arrays


def _as_output(value: Any) -> Any:
    """The array that an output's memory is seen through; `value` itself when it is none."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Buffer):
        return value.numpy()
    return from_dlpack(value) if hasattr(value, "__dlpack__") else value


def no_outputs(spec: FunctionSpec, given: Any) -> GradirError:
    """The error for an `out=` that is neither an array nor a sequence of arrays."""
    expected = ", ".join(map(str, spec.outputs)) or "()"
    many = f"a tuple of {len(spec.outputs)} arrays: {expected}"
    wanted = f"an array {expected}" if len(spec.outputs) == 1 else many
    return misuse(spec, "RT006", "out= is no array", wanted, type(given).__name__, "pass numpy arrays or Buffers")


def _share_bytes(a: Array, b: Array) -> bool:
    """Whether some byte belongs to both; interleaved slices of one array do not overlap. What takes long to find out counts as no."""
    try:
        return np.shares_memory(a, b, max_work=10_000)  # pyright: ignore[reportArgumentType]  (numpy knows two of the numbers it takes)
    except np.exceptions.TooHardError:
        return False


def overlaps(array: Array, others: Sequence[Any]) -> bool:
    """Whether `array` may share bytes with one of `others` (judged by their address ranges)."""
    return any(isinstance(other, np.ndarray) and np.may_share_memory(array, other) for other in others)


def _is_right(tensor: TensorSpec, value: Any) -> bool:
    """The common case, decided in 0.3 us: an array of exactly the static shape and type, ready to be read."""
    if type(value) is not np.ndarray or value.shape != tensor.shape or value.dtype is not numpy_dtype(tensor.dtype):
        return False
    return value.flags.c_contiguous and value.flags.aligned and tensor.kind == "tensor"


def _check_input(spec: FunctionSpec, tensor: TensorSpec, value: Any, sizes: CallSizes) -> Any:
    array = as_array(spec, tensor, value)
    check_array(spec, tensor, array.shape, array.dtype, sizes)
    if tensor.kind == "scalar":
        if tensor.binds:
            sizes.see(tensor.binds, int(array), f"value of '{tensor.name}'")
        return array[()]
    return plain(array, numpy_dtype(tensor.dtype))


def check_array(spec: FunctionSpec, tensor: TensorSpec, shape: tuple[int, ...], found: np.dtype[Any], sizes: CallSizes) -> None:
    """Raise the error of an array whose element type or shape does not fit; note the sizes that it binds."""
    dtype = numpy_dtype(tensor.dtype)
    if found != dtype:
        raise misuse(
            spec,
            "RT003",
            f"input '{tensor.name}' has another element type",
            str(tensor),
            _text(shape, found),
            f"convert it: x.astype({dtype.name!r})",
        )
    if len(shape) != len(tensor.shape):
        raise misuse(spec, "RT002", f"input '{tensor.name}' has another rank", str(tensor), _text(shape, found), "reshape it")
    for k, (want, have) in enumerate(zip(tensor.shape, shape, strict=True)):
        if isinstance(want, int) and want != have:
            what = f"input '{tensor.name}' has another size in dim {k}"
            raise misuse(spec, "RT002", what, str(tensor), _text(shape, found), "pass the shape compiled for")
        if isinstance(want, str):
            sizes.see(want, have, f"dim {k} of '{tensor.name}'")


def plain(array: Array, dtype: np.dtype[Any]) -> Array:
    """The array, contiguous and aligned, with this very dtype object: equal types may be different objects; native code knows one."""
    found = np.require(array, requirements=("C", "A"))
    return found if found.dtype is dtype else found.view(dtype)


def as_array(spec: FunctionSpec, tensor: TensorSpec, value: Any) -> Array:
    """What a caller passed for an input, as an array of the host."""
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    if isinstance(value, Buffer | DeviceArray):
        return value.numpy()
    if isinstance(value, bool | int | float | complex) and not tensor.shape:
        return _number(spec, tensor, value)
    exporter: Any = value
    if hasattr(exporter, "__dlpack__"):
        return from_dlpack(exporter)
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return np.asarray(value)
    raise misuse(
        spec,
        "RT005",
        f"input '{tensor.name}' is not an array",
        str(tensor),
        f"{type(value).__name__} {value!r}"[:80],
        "pass a numpy array, a Buffer, or what exports DLPack",
    )


def _number(spec: FunctionSpec, tensor: TensorSpec, value: complex) -> Array:
    dtype = numpy_dtype(tensor.dtype)
    try:
        array = np.asarray(value, dtype)
    except (OverflowError, TypeError):
        array = None
    lossy = array is None or (isinstance(value, float) and dtype.kind in "iub") or (dtype.kind == "b" and not isinstance(value, bool))
    if array is None or lossy:
        raise misuse(
            spec, "RT003", f"input '{tensor.name}' cannot hold this number", str(tensor), repr(value), "pass a number of that element type"
        )
    return array


def output_shape(spec: FunctionSpec, tensor: TensorSpec, sizes: CallSizes) -> tuple[int, ...]:
    """The shape of a result in a call with these sizes; `GradirError` RT008 where it is not known."""
    shape: list[int] = []
    for k, dim in enumerate(tensor.shape):
        size = sizes.of(dim)
        if size is not None:
            shape.append(size)
        else:
            raise misuse(
                spec,
                "RT008",
                f"the size of dim {k} of output '{tensor.name}' is not known before the call",
                "a static size, or a name that an input binds",
                str(tensor),
                "pass the array to write to: out=[...]",
            )
    return tuple(shape)


def _shape_fits(tensor: TensorSpec, shape: tuple[int, ...], sizes: CallSizes) -> bool:
    if len(shape) != len(tensor.shape):
        return False
    return all(sizes.of(dim) in (None, have) for dim, have in zip(tensor.shape, shape, strict=True))


def _expected_text(tensor: TensorSpec, sizes: CallSizes) -> str:
    known = ((dim, sizes.of(dim)) for dim in tensor.shape)
    return str(TensorSpec(tensor.name, tuple(dim if size is None else size for dim, size in known), tensor.dtype))


def _array_text(array: Array) -> str:
    return _text(array.shape, array.dtype)


def _text(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    return "x".join((*map(str, shape), dtype_name(dtype)))
