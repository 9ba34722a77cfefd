"""Decisions of the tuner on disk: one file per kernel structure, in a folder per target and compiler version.

    tuned/<hash of target and toolchain>/about.json       what the folder is for
    tuned/<hash of target and toolchain>/<kernel>.json    one decision

A decision holds for the compiler that made it: another version has other generators, and another folder. Files are written atomically; a
file that cannot be read counts as absent.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gradir.dialects.kernel import KINDS, Schedule
from gradir.driver.cache import digest
from gradir.driver.versions import toolchain, versions
from gradir.errors import GradirError
from gradir.runtime.artefact import write_atomically

FORMAT = 1
LIBRARY = "library"
"""`kind` of a decision for a vendor's library: the field `library` has its name."""


@dataclass(frozen=True)
class Choice:
    """A schedule as data: kind and fields; or a library function."""

    kind: str
    fields: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    library: str = ""

    @classmethod
    def of(cls, schedule: Schedule) -> Choice:
        return cls(schedule.kind, {name: schedule.field(name) for name in schedule.FIELDS if schedule.field(name)})

    def schedule(self) -> Schedule | None:
        """The attribute; None for a library, and for a kind or field that this version lacks."""
        kind = KINDS.get(self.kind)
        if kind is None or self.library or set(self.fields) - set(kind.FIELDS):
            return None
        return kind.of(**self.fields)

    def __str__(self) -> str:
        if self.library:
            return f"@{self.library}"
        return " ".join([self.kind, *(f"{name} {'x'.join(map(str, values))}" for name, values in self.fields.items())])


@dataclass(frozen=True)
class Record:
    """What was decided for one kernel: `choice` instead of `default`, `gain` times as fast; `choice` equal to `default` means that nothing
    tried was significantly faster. Seconds are of one call, alone. `kernel` and `location` say where it was seen first."""

    key: str
    kernel: str
    location: str
    default: Choice
    choice: Choice
    default_seconds: float
    seconds: float
    tried: int
    refused: int = 0

    @property
    def gain(self) -> float:
        return self.default_seconds / self.seconds if self.seconds else 1.0

    @property
    def changed(self) -> bool:
        return self.choice != self.default

    @property
    def reason(self) -> str:
        """`gradir.reason` of the kernel."""
        if not self.changed:
            return f"tuned: the heuristic's choice is the fastest of {self.tried}"
        return f"tuned: {self.gain:.2f} times as fast as {self.default}, of {self.tried} tried"

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Record:
        """`KeyError`, `TypeError` or `ValueError` for anything else than `to_json`'s value."""
        if value["format"] != FORMAT:
            raise ValueError(f"format {value['format']}")
        return Record(
            str(value["key"]),
            str(value["kernel"]),
            str(value["location"]),
            _choice(value["default"]),
            _choice(value["choice"]),
            float(value["default_seconds"]),
            float(value["seconds"]),
            int(value["tried"]),
            int(value["refused"]),
        )


def _choice(value: Mapping[str, Any]) -> Choice:
    return Choice(str(value["kind"]), {str(k): tuple(int(n) for n in v) for k, v in value["fields"].items()}, str(value["library"]))


@dataclass(frozen=True)
class Records:
    """The decisions under `directory` (the cache directory)."""

    directory: Path

    @property
    def root(self) -> Path:
        return self.directory / "tuned"

    def folder(self, target: str) -> Path:
        """Where decisions for that target and this compiler are."""
        return self.root / digest("tuned", target, toolchain())[:32]

    def state(self) -> str:
        """A text that changes whenever any decision does; empty without decisions. Part of the keys of compiled programs."""
        rows = sorted(f"{path.name} {path.stat().st_mtime_ns}" for path in self.root.glob("*/*.json") if path.name != "about.json")
        return hashlib.sha256("\n".join(rows).encode()).hexdigest() if rows else ""

    def find(self, target: str, key: str) -> Record | None:
        """The decision for the kernel with that key."""
        return _read(self.folder(target) / f"{key}.json")

    def known(self, target: str) -> bool:
        """Whether there is any decision for that target by this compiler."""
        folder = self.folder(target)
        return folder.is_dir() and any(path.name != "about.json" for path in folder.iterdir())

    def put(self, target: str, record: Record) -> None:
        """Keep a decision; `OSError` where the directory cannot be written."""
        folder = self.folder(target)
        folder.mkdir(parents=True, exist_ok=True)
        about = folder / "about.json"
        if not about.exists():
            write_atomically(about, json.dumps({"target": target, "versions": versions()}).encode())
        write_atomically(folder / f"{record.key}.json", json.dumps(record.to_json(), sort_keys=True).encode())

    def drop(self, target: str, key: str) -> None:
        """Forget one decision."""
        (self.folder(target) / f"{key}.json").unlink(missing_ok=True)

    def all(self) -> list[tuple[str, bool, list[Record]]]:
        """(target, whether this compiler made them, decisions) of each folder."""
        found: list[tuple[str, bool, list[Record]]] = []
        for folder in sorted(self.root.glob("*")):
            try:
                target = str(json.loads((folder / "about.json").read_text(encoding="utf-8"))["target"])
            except (OSError, ValueError, KeyError):
                continue
            read = (_read(path) for path in sorted(folder.glob("*.json")) if path.name != "about.json")
            records = [record for record in read if record is not None]
            found.append((target, folder == self.folder(target), records))
        return found

    def clear(self) -> int:
        """Forget all decisions, of every target and version; how many there were."""
        count = sum(len(records) for _, _, records in self.all())
        shutil.rmtree(self.root, ignore_errors=True)
        return count

    def export(self) -> str:
        """The decisions of this compiler as JSON, for `take`."""
        folders = [{"target": target, "records": [r.to_json() for r in records]} for target, ours, records in self.all() if ours]
        return json.dumps({"format": FORMAT, "versions": versions(), "folders": folders}, indent=1, sort_keys=True) + "\n"

    def take(self, text: str, origin: str) -> int:
        """Keep the decisions that `export` wrote; how many. GradirError RT062 for another format or another version of the compiler."""
        try:
            value = json.loads(text)
            made_by, folders = dict(value["versions"]), list(value["folders"])
            rows = [(str(f["target"]), Record.from_json(r)) for f in folders for r in f["records"]]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _no_decisions(origin, f"{type(error).__name__}: {error}") from error
        if made_by != versions():
            raise _no_decisions(origin, ", ".join(f"{k} {v}" for k, v in made_by.items()))
        for target, record in rows:
            self.put(target, record)
        return len(rows)


def _read(path: Path) -> Record | None:
    try:
        return Record.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _no_decisions(origin: str, found: str) -> GradirError:
    return GradirError(
        f"{origin} holds no decisions of the tuner for this compiler",
        part="runtime",
        code="RT062",
        expected="a file of `gradir-tune --export`, made by " + ", ".join(f"{k} {v}" for k, v in versions().items()),
        found=found,
        hint="tune on this machine: gradir-tune FILE.mlir",
    )


__all__ = ["LIBRARY", "Choice", "Record", "Records"]
