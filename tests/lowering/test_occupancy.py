"""Occupancy against numbers of NVIDIA's calculator, and the tables of architectures and cards."""

from __future__ import annotations

import pytest

from gradir.dialects.target.cuda import SMS, CudaTargetAttr
from gradir.dialects.target.cuda_facts import ARCHITECTURES, CARDS, architecture
from gradir.lowering.schedules.occupancy import occupancy


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "blocks", "limit"),
    [
        ("sm_80", 256, 32, 0, 8, "warps"),
        ("sm_80", 256, 64, 0, 4, "registers"),
        ("sm_80", 256, 168, 0, 1, "registers"),
        ("sm_80", 32, 16, 0, 32, "blocks"),
        ("sm_86", 32, 16, 0, 16, "blocks"),
        ("sm_86", 256, 32, 0, 6, "warps"),
        ("sm_80", 128, 32, 48 << 10, 3, "shared memory"),
        ("sm_90", 384, 168, 192 << 10, 1, "registers"),
        ("sm_80", 128, 32, 200 << 10, 0, "nothing fits"),
        ("sm_80", 1024, 255, 0, 0, "nothing fits"),
        ("sm_80", 2048, 16, 0, 0, "nothing fits"),
    ],
)
def test_blocks_of_a_multiprocessor(arch: str, threads: int, registers: int, shared: int, blocks: int, limit: str) -> None:
    found = occupancy(arch, threads, registers, shared)
    assert (found.blocks, found.limit) == (blocks, limit)
    assert found.warps == blocks * -(-threads // 32) and 0 <= found.share <= 1


def test_tables_agree() -> None:
    assert set(SMS) <= set(ARCHITECTURES)
    for name, card in CARDS.items():
        assert card.name == name and card.arch in ARCHITECTURES and card.peak("f32") > 0
    assert CARDS["h200"].peak("bf16") > CARDS["h200"].peak("tf32") > CARDS["h200"].peak("f32") == CARDS["h200"].peak("i64")
    assert all(CudaTargetAttr.of(arch).shared <= facts.shared_per_block for arch, facts in ARCHITECTURES.items())


def test_an_unknown_architecture_has_the_facts_of_sm_80() -> None:
    assert architecture("sm_200") is ARCHITECTURES["sm_80"]
