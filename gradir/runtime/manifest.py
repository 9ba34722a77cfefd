"""What a compiled module says about itself: signatures, objects, source map, versions, target. Plain JSON, no pickle.

Dims are sizes, names (one size for every dim of that name in a call), texts computed from names (`2*b+1`) or null (any size). The
manifest states everything that calling needs, so a saved artefact runs where the compiler is not installed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from gradir.errors import GradirError
from gradir.runtime import abi
from gradir.runtime.cuda.spec import DeviceSpec, device_from_json

Dim = int | str | None

FORMAT = 1
"""Version of this file format; another one is refused."""


@dataclass(frozen=True)
class TensorSpec:
    """One input or output: `bx64xf32`. A `scalar` is a number passed by value: no shape; its value may be the size called `binds`."""

    name: str
    shape: tuple[Dim, ...]
    dtype: str
    kind: Literal["tensor", "scalar"] = "tensor"
    binds: str = ""

    def __str__(self) -> str:
        dims = "x".join("?" if dim is None else str(dim) for dim in self.shape)
        return f"{dims}x{self.dtype}" if dims else self.dtype

    @property
    def dynamic_dims(self) -> tuple[int, ...]:
        """Positions whose size is known only at a call."""
        return tuple(index for index, dim in enumerate(self.shape) if not isinstance(dim, int))


@dataclass(frozen=True)
class SizeSpec:
    """What a call may bind a named size to: `b >= 1, b <= 64, b a multiple of 8`."""

    name: str
    min: int = 0
    max: int | None = None
    multiple: int = 1

    def holds(self, size: int) -> bool:
        """Whether that size is allowed."""
        return size >= self.min and (self.max is None or size <= self.max) and size % self.multiple == 0

    def __str__(self) -> str:
        parts = [f"{self.name} >= {self.min}"]
        if self.max is not None:
            parts.append(f"{self.name} <= {self.max}")
        if self.multiple != 1:
            parts.append(f"{self.name} a multiple of {self.multiple}")
        return ", ".join(parts)


@dataclass(frozen=True)
class FunctionSpec:
    """A public function: `symbol` takes the context and the packed slots; the trees are the frontend's business.

    `sizes`: the named sizes that have limits.
    """

    name: str
    symbol: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    arena_bytes: int = 0
    input_tree: str = ""
    output_tree: str = ""
    sizes: tuple[SizeSpec, ...] = ()
    workspace: str = ""
    """Bytes that a call takes beside the arena, computed from dimensions of inputs: `64*floordiv(x_0+15,16)` for dim 0 of `x`."""
    aliases: tuple[tuple[int, int], ...] = ()
    """Pairs (input, result) that lie in the same memory: a caller passes one pointer for both."""
    brief: bool = False
    """Whether a call takes less time than releasing and taking back the GIL."""

    @property
    def slot_count(self) -> int:
        """Words of the packed call: a pointer or value each, sizes of dynamic dims, the arena."""
        specs = self.inputs + self.outputs
        return len(specs) + sum(len(spec.dynamic_dims) for spec in specs) + (1 if self.arena_bytes else 0)


@dataclass(frozen=True)
class SourceLine:
    """Where an op that may fail came from, and what to say when it does."""

    op: str
    function: str
    location: str
    message: str = ""


@dataclass(frozen=True)
class KernelRef:
    """A kernel that lives in another object: entry `index` of `@gradir.kernels` is `symbol` of `objects[object_index]`."""

    symbol: str
    object_index: int


@dataclass(frozen=True)
class LibrarySpec:
    """A function that the module calls by name. Sizes and types are those of its buffers; `complex_parts` are the positions, among inputs
    and outputs, of buffers whose last dim is a real and an imaginary part."""

    name: str
    config: Mapping[str, Any]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    complex_parts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Target:
    """The machine that the objects were compiled for."""

    triple: str
    cpu: str
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Manifest:
    """Everything about a compiled module except the objects' bytes; `objects[0]` defines the functions."""

    functions: tuple[FunctionSpec, ...]
    kernels: tuple[KernelRef, ...]
    target: Target
    source_map: Mapping[int, SourceLine] = field(default_factory=dict[int, SourceLine])
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    threads: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    libraries: tuple[LibrarySpec, ...] = ()
    """By id: what the code calls back."""
    device: DeviceSpec | None = None
    """The part for a GPU, whose host code the first object is."""

    def to_json(self) -> dict[str, Any]:
        """A JSON value that `from_json` reads back."""
        return {
            "format": FORMAT,
            "abi": abi.VERSION,
            **asdict(self),
            "source_map": {str(key): asdict(line) for key, line in self.source_map.items()},
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Manifest:
        """Read `to_json`'s value; `GradirError` RT011 when a field is missing or of another shape."""
        if value.get("format") != FORMAT:
            raise malformed("another format version", str(FORMAT), str(value.get("format")))
        version = value.get("abi", 1)  # the first version was not written down
        if version != abi.VERSION:
            raise malformed("its code calls the runtime in another way", f"version {abi.VERSION} of the ABI", f"version {version}")
        try:
            return Manifest(
                functions=tuple(_function(row) for row in value["functions"]),
                kernels=tuple(KernelRef(str(row["symbol"]), int(row["object_index"])) for row in value["kernels"]),
                target=Target(str(value["target"]["triple"]), str(value["target"]["cpu"]), tuple(map(str, value["target"]["features"]))),
                source_map={int(key): SourceLine(**line) for key, line in value["source_map"].items()},
                versions=dict(value["versions"]),
                threads=value["threads"],
                details=dict(value["details"]),
                libraries=tuple(_library(row) for row in value.get("libraries", ())),
                device=device_from_json(value.get("device")),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise malformed("a field is missing or malformed", "the fields of format 1", f"{type(error).__name__}: {error}") from error


def malformed(what: str, expected: str, found: str) -> GradirError:
    """The error for a manifest that this version cannot read."""
    return GradirError(
        f"the manifest cannot be read: {what}",
        part="runtime",
        code="RT011",
        expected=expected,
        found=found,
        hint="save the module again with this version of gradir",
    )


def _function(row: Mapping[str, Any]) -> FunctionSpec:
    return FunctionSpec(
        name=str(row["name"]),
        symbol=str(row["symbol"]),
        inputs=_specs(row["inputs"]),
        outputs=_specs(row["outputs"]),
        arena_bytes=int(row["arena_bytes"]),
        input_tree=str(row["input_tree"]),
        output_tree=str(row["output_tree"]),
        workspace=str(row["workspace"]),
        brief=bool(row.get("brief", False)),
        aliases=tuple((int(argument), int(result)) for argument, result in row.get("aliases", ())),
        sizes=tuple(SizeSpec(str(size["name"]), int(size["min"]), _limit(size["max"]), int(size["multiple"])) for size in row["sizes"]),
    )


def _limit(value: Any) -> int | None:
    return None if value is None else int(value)


def _library(row: Mapping[str, Any]) -> LibrarySpec:
    parts = tuple(int(k) for k in row["complex_parts"])
    return LibrarySpec(str(row["name"]), dict(row["config"]), _specs(row["inputs"]), _specs(row["outputs"]), parts)


def _specs(rows: Sequence[Mapping[str, Any]]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(str(row["name"]), tuple(row["shape"]), str(row["dtype"]), row["kind"], str(row["binds"])) for row in rows)


def dump(manifest: Manifest, extra: Mapping[str, Any]) -> bytes:
    """Compact JSON bytes of the manifest and `extra` top-level fields, keys sorted: equal content, equal bytes."""
    return json.dumps({**manifest.to_json(), **extra}, sort_keys=True, separators=(",", ":")).encode()
