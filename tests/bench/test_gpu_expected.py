"""What is computed for a card that nobody has: forms of kernels, shares, the page, the wheels to carry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.gpu import page
from bench.gpu.expected import COPY, FORMS, LAUNCH, Form, filled, forms, kernel_seconds, memory_share
from bench.gpu.pack import command, requirements
from gradir.dialects.target.cuda_facts import CARDS
from gradir.driver.explain.cuda import CudaRow, LaunchRow

CARD = CARDS["h200"]


def launch(blocks: int, share: float = 1.0) -> LaunchRow:
    return LaunchRow("k", (blocks, 1, 1), (256, 1, 1), registers=32, shared=0, spills=0, occupancy=share)


def row(flops: int, moved: int, *launches: LaunchRow) -> CudaRow:
    return CudaRow("k", "contraction", "", "", 1, flops, moved, 0, "bf16", None, "", launches)


def test_the_form_of_a_kernel_is_read_off_its_text() -> None:
    text = """
.visible .entry plain(.param .u64 p) { fma.rn.f32 a; fma.rn.f32 b; }
.visible .entry warps(.param .u64 p) { cp.async.cg.shared.global [a]; cp.async.wait_group 2; mma.sync.aligned.m16n8k16 x; cp.async.wait_group 0; }
"""
    assert forms(text) == {"plain": Form("fma", 2, 1), "warps": Form("mma", 1, 4)}


def test_a_round_that_is_not_full_costs_a_whole_one() -> None:
    at_once = 132 * 8
    assert filled(launch(at_once), CARD) == 1.0
    assert filled(launch(at_once + 1), CARD) == pytest.approx((at_once + 1) / (2 * at_once))
    assert filled(launch(33), CARD) == pytest.approx(0.25)
    assert filled(launch(128 * 6), CARDS["rtx4090"]) == 1.0, "48 warps a multiprocessor"


def test_few_resident_threads_do_not_fill_the_memory() -> None:
    assert memory_share(launch(10_000), CARD) == COPY
    assert memory_share(launch(10_000, 0.125), CARD) < COPY / 2


def test_the_longer_of_compute_and_memory_and_the_launches() -> None:
    known = {"k": Form("mma", 64, 4)}
    full = launch(132 * 8 * 50)
    compute = kernel_seconds(row(10**15, 1, full), CARD, known)
    assert compute == pytest.approx(10**15 / (989.4e12 * FORMS["mma"]) + LAUNCH)
    memory = kernel_seconds(row(1, 10**10, full, full), CARD, known)
    assert memory == pytest.approx(10**10 / (4.8e12 * COPY) + 2 * LAUNCH)


def test_the_page_says_what_was_run(tmp_path: Path) -> None:
    out = tmp_path / "page.md"
    assert page.main(["--cases=softmax 65536x512", f"--out={out}"]) == 0
    text = out.read_text()
    assert "No GPU has run any of it yet" in text and "| softmax 65536x512 | 268M | 268M | 55.9 us | memory |" in text
    figures = tmp_path / "figures.json"
    speed = [{"group": "gemm", "name": "bf16 1x1x1", "seconds": 2e-6, "bound": 1e-6, "peer": 1e-6}]
    values = {"card": "NVIDIA H200", "versions": {"torch": "2.9"}, "right": 3, "wrong": [], "speed": speed, "overhead_us": {"gradir": 7.0}}
    figures.write_text(json.dumps(values))
    page.main(["--cases=nothing", f"--out={out}", f"--measured={figures}"])
    text = out.read_text()
    assert "Measured on a NVIDIA H200" in text and "| gemm bf16 1x1x1 | 2.0 | 50% | 1.0 | 0.50 |" in text and "gradir 7.0 us" in text


def test_wheels_are_those_of_the_project_file() -> None:
    assert any(word.startswith("xdsl==") for word in requirements()) and len(requirements(ptxas=True)) == len(requirements()) + 1
    assert "--only-binary=:all:" in command("wheels", "3.12") and "--dest" in command("wheels", "")
