"""Saving and loading: round trip, determinism, and every way in which a file can be wrong."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from gradir.errors import GradirError
from gradir.runtime import Module, abi, artefact, load
from gradir.runtime.manifest import Manifest, Target
from gradir.runtime.target import check_target, host_target
from tests.runtime import compiled_programs as programs

X = np.arange(4, dtype=np.float32)


def refused(code: str, call, *arguments) -> GradirError:
    with pytest.raises(GradirError) as caught:
        call(*arguments)
    assert caught.value.code == code
    return caught.value


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "chain.gradir"
    programs.chain().save(path)
    return path


def test_round_trip(saved, tmp_path):
    module = load(saved)
    assert module["chain"](np.float32(2)) == 9.0
    assert module.manifest == programs.chain().manifest
    again = tmp_path / "again.gradir"
    module.save(again)
    assert again.read_bytes() == saved.read_bytes()
    assert [p.name for p in tmp_path.iterdir()] != [] and not list(tmp_path.glob(".*"))


def test_everything_survives(tmp_path):
    path = tmp_path / "check.gradir"
    programs.check().save(path)
    error = refused("RT020", load(path)["check"], -1)
    assert error.location == "model.py:12:4"
    programs.twice().save(path)
    assert load(path)["twice"].spec == programs.DYNAMIC_SPEC


def test_no_such_file(tmp_path):
    assert refused("RT013", load, tmp_path / "none").found.endswith("none")


@pytest.mark.parametrize("size", [0, 7, 20, 60, -1])
def test_truncated(saved, size):
    saved.write_bytes(saved.read_bytes()[:size])
    refused("RT012", load, saved)


def test_every_byte_is_covered(saved):
    data = saved.read_bytes()
    for position in range(0, len(data), max(1, len(data) // 97)):
        altered = bytearray(data)
        altered[position] ^= 0x10
        refused("RT012", artefact.unpack, bytes(altered))


def test_appended(saved):
    assert "bytes" in refused("RT012", artefact.unpack, saved.read_bytes() + b"x").found


def test_object_altered_names_the_object(saved):
    data = bytearray(saved.read_bytes())
    data[-1] ^= 1
    assert "object 1" in refused("RT012", artefact.unpack, bytes(data)).expected


def test_another_format():
    value = programs.add().manifest.to_json()
    assert refused("RT011", Manifest.from_json, {**value, "format": 2}).found == "2"


def test_another_version_of_the_abi():
    value = programs.add().manifest.to_json()
    error = refused("RT011", Manifest.from_json, {**value, "abi": abi.VERSION + 1})
    assert (
        error.expected == f"version {abi.VERSION} of the ABI"
        and error.found == f"version {abi.VERSION + 1}"
        and "another way" in error.message
    )
    assert Manifest.from_json(value) == programs.add().manifest
    del value["abi"]  # as in files of version 1
    assert refused("RT011", Manifest.from_json, value).found == "version 1"


FOREIGN = {
    "another architecture": Target("aarch64-unknown-linux-gnu", "neoverse-n1"),
    "another system": Target("x86_64-apple-macosx11.0.0", "penryn"),
    "a larger processor": Target(host_target().triple, "sapphirerapids", (*host_target().features, "amx-tile", "warp-drive")),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_saved_artefact_of_another_processor(saved, name):
    """The file is whole, its objects are those of this machine: what it says about its target decides."""
    manifest, objects = artefact.unpack(saved.read_bytes())
    saved.write_bytes(artefact.pack(replace(manifest, target=FOREIGN[name]), objects))
    error = refused("RT014", load, saved)
    assert FOREIGN[name].cpu in error.found and host_target().cpu in error.expected and "compile it again" in error.hint
    if name == "a larger processor":
        assert "warp-drive" in error.found


@pytest.mark.parametrize("key", ["functions", "kernels", "target", "source_map", "versions", "threads"])
def test_missing_field(key):
    value = programs.add().manifest.to_json()
    del value[key]
    assert key in refused("RT011", Manifest.from_json, value).found


def test_manifest_is_json():
    manifest = programs.check().manifest
    assert Manifest.from_json(json.loads(json.dumps(manifest.to_json()))) == manifest


def test_another_machine():
    host = host_target()
    error = refused("RT014", check_target, Target("aarch64-unknown-linux-gnu", "cortex-a72"))
    assert "aarch64" in error.found and host.cpu in error.expected
    assert "warp-drive" in refused("RT014", check_target, Target(host.triple, host.cpu, ("warp-drive",))).found
    check_target(Target(host.triple.replace("unknown", "pc"), "x86-64"))


def test_another_machine_is_refused_before_linking():
    manifest = programs.manifest(programs.ADD_SPEC)
    foreign = Manifest(manifest.functions, (), Target("sparc-sun-solaris", "v9"))
    refused("RT014", Module, foreign, [b"not an object"])


def test_objects_that_do_not_link():
    manifest = programs.manifest(programs.ADD_SPEC)
    refused("RT010", Module, manifest, [programs.compiled(programs.KERNELS)])  # has no add.packed
    needs = (
        "declare void @no_such_symbol(i32)\ndefine i32 @add.packed(ptr %c, ptr %a) {\n call void @no_such_symbol(i32 3)\n ret i32 0\n}\n"
    )
    refused("RT010", Module, manifest, [programs.compiled(needs)])
