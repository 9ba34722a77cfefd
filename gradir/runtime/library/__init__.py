"""Functions that compiled programs call by name: the ones that come with us, and those that users register.

A row is a *writer* `f(config, outputs, *inputs)` that fills its outputs, or the address of a C function (`gradir.runtime.abi` has its
signature), which runs without Python. Names of ours load on first use: `lapack.*`, `fft.*`. Needs numpy alone, so that saved artefacts run
where the compiler is not installed. Meaning, types and derivatives of a name are the compiler's business (`gradir.dialects.custom_calls`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, cast

import numpy as np

from gradir.errors import GradirError
from gradir.runtime.caller import caller_location
from gradir.runtime.manifest import LibrarySpec

Array = np.ndarray[Any, np.dtype[Any]]
Writer = Callable[..., None]
"""`writer(config, outputs, *inputs)`"""


Native = Callable[[LibrarySpec], tuple[int, int, object]]
"""Of a row that is the runtime's own: for each place that calls it the address of an `i32 (context, data, buffers)`, its data, and what
keeps these alive."""


@dataclass(frozen=True)
class Row:
    """How one name is computed: by `writer`, by the C function at `address`, which `keep` keeps alive, or as `native` says."""

    name: str
    writer: Writer | None = None
    address: int = 0
    keep: object = field(default=None, compare=False)
    native: Native | None = None


ROWS: dict[str, Row] = {}

FAMILIES: dict[str, str] = {
    "lapack": "gradir.runtime.library.lapack",
    "fft": "gradir.runtime.library.fourier",
    "print": "gradir.runtime.library.console",
    "profile": "gradir.runtime.profile",
    "blas": "gradir.runtime.library.blas",
}
"""First word of a name -> the module whose import adds the rows."""


def register(name: str, function: Any, *, into: bool = False) -> Row:
    """Let compiled programs that are loaded from now on find `name`.

    `function`: a Python function `f(*arrays, **config)` that returns its results (with `into`: a writer `f(config, outputs, *inputs)`),
    or a C function: a ctypes function pointer, a PyCapsule, or a pair (path of a shared library, symbol). GradirError RT031 for
    anything else.
    """
    if isinstance(function, Row):
        row = Row(name, function.writer, function.address, function.keep, function.native)
    elif (address := c_address(function)) is not None:
        row = Row(name, None, address, function)
    elif callable(function):
        row = Row(name, cast("Writer", function) if into else writer_of(function, name))
    else:
        raise _no_function(name, repr(function)[:80])
    ROWS[name] = row
    return row


def find(name: str) -> Row | None:
    """The row of `name`; loads ours."""
    found = ROWS.get(name)
    family = FAMILIES.get(name.partition(".")[0])
    if found is None and family is not None:
        import_module(family)
        found = ROWS.get(name)
    return found


def resolve(name: str) -> Row:
    """The row of `name`; GradirError RT030 when there is none."""
    found = find(name)
    if found is None:
        raise GradirError(
            f"the module calls @{name}, which is not registered here",
            part="runtime",
            code="RT030",
            location=caller_location(),
            expected=f"a function registered as {name}; here are {', '.join(sorted(ROWS)) or 'none'}",
            found=f"@{name}",
            hint=f'register it before the module is loaded: gradir.runtime.library.register("{name}", function)',
        )
    return found


def writer_of(function: Callable[..., Any], name: str) -> Writer:
    """A function that returns its results, as one that writes them."""

    def write(config: Mapping[str, Any], outputs: Sequence[Array], *inputs: Array) -> None:
        results = as_tuple(function(*inputs, **config))
        if len(results) != len(outputs):
            raise _other_results(name, f"{len(outputs)} results", f"{len(results)}")
        for k, (output, result) in enumerate(zip(outputs, results)):
            array = np.asarray(result)
            if array.shape != output.shape or array.dtype != output.dtype:
                raise _other_results(name, f"result {k}: {output.shape} {output.dtype}", f"{array.shape} {array.dtype}")
            output[...] = array

    return write


def as_tuple(results: Any) -> tuple[Any, ...]:
    """What a function returned, one by one: None is no result, a list or tuple several."""
    if results is None:
        return ()
    return tuple(results) if isinstance(results, list | tuple) else (results,)


def c_address(function: Any) -> int | None:
    """The address of a C function in the forms that `register` takes; None for another kind of object."""
    if isinstance(function, tuple) and len(function) == 2 and all(isinstance(part, str) for part in function):
        return _symbol(*function)
    if isinstance(function, ctypes._CFuncPtr):  # pyright: ignore[reportAttributeAccessIssue]  the base class of all function pointers
        return ctypes.cast(cast("Any", function), ctypes.c_void_p).value
    if type(function).__name__ == "PyCapsule":
        return _capsule(function)
    return None


def _symbol(path: str, symbol: str) -> int:
    try:
        return ctypes.cast(getattr(ctypes.CDLL(path), symbol), ctypes.c_void_p).value or 0
    except (OSError, AttributeError) as error:
        raise _no_function(f"{path}:{symbol}", str(error)) from error


def _capsule(capsule: Any) -> int:
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    return pointer_of(capsule, name_of(capsule))


def _no_function(name: str, found: str) -> GradirError:
    return GradirError(
        f"{name} is not a function that can be registered",
        part="runtime",
        code="RT031",
        location=caller_location(),
        expected="a callable, a ctypes function pointer, a PyCapsule, or (path of a shared library, symbol)",
        found=found,
        hint="wrap it in a Python function, or check the path and the symbol",
    )


def _other_results(name: str, expected: str, found: str) -> GradirError:
    return GradirError(
        f"@{name} gives other results than the program declares",
        part="runtime",
        code="RT033",
        expected=expected,
        found=found,
        hint="make the function and its shape rule agree",
    )
