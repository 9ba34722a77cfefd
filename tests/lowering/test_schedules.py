"""`schedule-kernels`: which fields the heuristics write for which shapes and machines, and that hand-written ones stay."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, Schedule
from gradir.dialects.registry import make_context
from gradir.dialects.target import TARGET_ATTRIBUTE, CpuTargetAttr
from gradir.ir.passes import PassContext
from gradir.lowering.schedule_kernels import ScheduleKernels
from gradir.lowering.schedules.contraction import even_split
from gradir.lowering.schedules.machine import Machine, machine_of
from tests.lowering.level3_kernels import KernelText, bias_gradient, matmul, product_body, softmax


def scheduled(text: str, target: CpuTargetAttr | None = None) -> Schedule:
    module = Parser(make_context(), text).parse_module()
    if target is not None:
        module.attributes[TARGET_ATTRIBUTE] = target
    ScheduleKernels().apply(module, PassContext())
    (function,) = module.body.block.ops
    found = function.attributes[KERNEL_ATTRIBUTE]
    assert isinstance(found, Schedule)
    return found


AVX2 = CpuTargetAttr.of("znver3")
AVX512 = CpuTargetAttr.of("znver4", vector=16, registers=32)


@pytest.mark.parametrize(
    ("shape", "target", "tile"),
    [
        ((64, 128, 64), AVX2, (6, 16)),
        ((64, 128, 64), AVX512, (12, 32)),
        ((64, 7, 64), AVX2, (12, 8)),
        ((1, 512, 64), AVX2, (1, 64)),
        ((1, 10, 64), AVX2, (1, 8)),
        ((2, 512, 64), AVX2, (2, 32)),
    ],
)
def test_the_register_tile_fills_the_registers(shape: tuple[int, int, int], target: CpuTargetAttr, tile: tuple[int, int]) -> None:
    assert scheduled(matmul("mm", *shape), target).field("tile") == tile


def test_f64_has_half_the_lanes() -> None:
    assert scheduled(matmul("mm", 64, 128, 64, "f64"), AVX2).field("tile") == (6, 8)


def test_packing_where_columns_are_far_apart() -> None:
    assert scheduled(matmul("mm", 64, 128, 64)).field("pack") == (1,)  # rows 512 bytes apart
    assert scheduled(matmul("mm", 64, 40, 16)).field("pack") == ()
    assert scheduled(matmul("mm", 4, 128, 64)).field("pack") == ()  # too few rows to pay for it
    assert scheduled(matmul("mm", 64, 40, 16, b="n, k")).field("pack") == (1,)  # not side by side along n
    assert scheduled(matmul("mm", 4, 40, 16, b="n, k")).field("pack") == ()  # dot products instead


def test_blocks_of_k_for_long_sums_of_few_results() -> None:
    assert scheduled(matmul("mm", 64, 64, 8192)).field("block") == (96, 64, 512)
    assert scheduled(matmul("mm", 64, 40, 16)).field("block") == ()
    assert scheduled(matmul("mm", 1, 4096, 4096)).field("block") == (0, 0, 8)
    assert scheduled(matmul("mm", 1000, 1000, 20000)).field("block")[2] == 2048  # six rows of k are more than half of L2


def test_blocks_of_rows_stay_in_l2_and_groups_of_columns_are_equal() -> None:
    assert scheduled(matmul("mm", 1000, 1000, 1000), AVX2).field("block") == (96, 256, 0)
    assert scheduled(matmul("mm", 1000, 1000, 4000), AVX2).field("block") == (24, 256, 0)
    assert scheduled(matmul("mm", 1000, 272, 1000), AVX2).field("block") == (96, 144, 0)  # 17 panels: 9 and 8
    two = CpuTargetAttr.of("znver3", threads=2)
    assert scheduled(matmul("mm", 1000, 768, 1000), two).field("block") == (96, 192, 0)  # four groups for two threads
    rows = scheduled(matmul("mm", 100000, 24, 100), two)
    assert rows.field("parallel") == (0,) and rows.field("block")[0] > 0


def test_a_transposed_row_operand_is_turned_where_it_is_used_often() -> None:
    assert scheduled(matmul("mm", 512, 512, 512, a="k, m")).field("pack") == (0, 1)
    assert scheduled(matmul("mm", 512, 512, 512)).field("pack") == (1,)
    assert scheduled(matmul("mm", 512, 40, 512, a="k, m")).field("pack") == (1,)


def test_threads_share_the_outermost_loop_of_large_work() -> None:
    two = CpuTargetAttr.of("znver3", threads=2)
    assert scheduled(matmul("mm", 256, 512, 512), two).field("parallel") == (1,)
    assert scheduled(matmul("mm", 256, 512, 512), AVX2).field("parallel") == ()
    assert scheduled(matmul("mm", 32, 32, 32), two).field("parallel") == ()
    assert scheduled(softmax("s", 4096, 1024), two).field("parallel") == (0,)
    assert scheduled(softmax("s", 64, 10), two).field("parallel") == ()
    assert scheduled(bias_gradient("b", 1024, 8192), two).field("parallel") == (1,)  # accumulates over rows: threads share columns,
    assert scheduled(bias_gradient("b", 4096, 1024), two).field("parallel") == (0,)  # or rows where columns would be pieces of a page
    assert scheduled(matmul("mm", 128, 128, 128), two).field("parallel") != ()
    assert scheduled(matmul("mm", 96, 96, 96), two).field("parallel") == ()
    assert scheduled(softmax("s", 128, 1024), two).field("parallel") == (0,)


def test_groups_of_columns_give_all_threads_the_same_to_do() -> None:
    two, three = CpuTargetAttr.of("znver3", threads=2), CpuTargetAttr.of("znver3", threads=3)
    assert (
        scheduled(matmul("mm", 512, 2304, 768), two).field("block")[1] == 12 * 16
    )  # 144 panels: 12 groups of 12, not 9 of 15 and one of 9
    assert scheduled(matmul("mm", 512, 512, 512), two).field("block")[1] == 256
    for columns in (512, 528, 1040, 2000, 2304, 3072, 4096):
        for target, threads in ((two, 2), (three, 3)):
            each = scheduled(matmul("mm", 512, columns, 768), target).field("block")[1]
            groups = -(-columns // each)
            assert each * -(-groups // threads) <= 1.1 * columns / threads + 32


def weight_gradient(batch: int, steps: int, rows: int, columns: int, layout: str = "") -> str:
    """x[b, s, m], ct[b, s, n] -> dw[m, n], the sum over b and s."""
    t = KernelText("dw", "contraction<>")
    t.arg("x", (batch, steps, rows), layout=layout)
    t.arg("ct", (batch, steps, columns))
    t.arg("out", (rows, columns))
    t.constant("zero", "0.0")
    t.fill("zero", "out")
    t.generic("m, n, b, s", [("x", "b, s, m"), ("ct", "b, s, n")], ("out", "m, n"), product_body("f32"), "b, s")
    return t.done()


def test_loops_that_are_one_in_memory_are_scheduled_as_one() -> None:
    flat = scheduled(matmul("dw", 768, 1024, 512, a="k, m", epilogue=False))
    assert flat.field("pack") == (0, 1)
    assert scheduled(weight_gradient(4, 128, 768, 1024)) == flat
    apart = scheduled(weight_gradient(4, 128, 768, 1024, ", strided<[131072, 768, 1]>"))  # rows of another array lie between the steps
    assert apart.field("pack") == (1,)


def test_threads_read_their_columns_in_bands_where_rows_are_few() -> None:
    two = CpuTargetAttr.of("znver3", threads=2)
    found = scheduled(matmul("mm", 1, 4096, 4096), two)
    assert (found.field("parallel"), found.field("block")) == ((1,), (0, 2048, 8))
    assert scheduled(matmul("mm", 4, 4096, 4096), two).field("block") == (0, 2048, 8)
    large = CpuTargetAttr.of("znver3", threads=2, l2=1 << 30)
    assert scheduled(matmul("mm", 1, 4096, 4096), large).field("block")[2] == 0  # the operand stays in L2


def test_convolutions_share_images() -> None:
    t = KernelText("conv", "contraction<>")
    t.arg("x", (16, 58, 58, 8))
    t.arg("f", (3, 3, 8, 32))
    t.arg("out", (16, 56, 56, 32))
    t.constant("zero", "0.0")
    t.fill("zero", "out")
    maps = [("x", "n, y + i, x + j, c"), ("f", "i, j, c, o")]
    t.generic("n, y, x, o, i, j, c", maps, ("out", "n, y, x, o"), product_body(), "i, j, c")
    assert scheduled(t.done(), CpuTargetAttr.of("znver3", threads=2)).field("parallel") == (0,)


def filter_gradient(channels: int, positions: int) -> str:
    """dw[c, i, j, o] = sum over n, y, x of image[n, y + i, x + j, c] * ct[n, y, x, o]."""
    t = KernelText("dw", "contraction<>")
    t.arg("x", (32, positions + 2, positions + 2, channels))
    t.arg("ct", (32, positions, positions, channels))
    t.arg("dw", (channels, 3, 3, channels))
    t.constant("zero", "0.0")
    t.fill("zero", "dw")
    maps = [("x", "n, y + i, x + j, c"), ("ct", "n, y, x, o")]
    t.generic("c, i, j, o, n, y, x", maps, ("dw", "c, i, j, o"), product_body(), "n, y, x")
    return t.done()


@pytest.mark.parametrize(("channels", "positions", "block"), [(32, 32, (0, 0, 128)), (128, 8, (0, 0, 128))])
def test_gradients_of_filters_read_their_operands_in_blocks(channels: int, positions: int, block: tuple[int, ...]) -> None:
    """Once for each offset in the window they are read: from L2."""
    assert scheduled(filter_gradient(channels, positions), AVX2).field("block") == block


def test_fields_written_by_hand_stay() -> None:
    schedule = scheduled(matmul("mm", 64, 128, 64, kind="contraction<tile = [2, 8]>"))
    assert schedule.field("tile") == (2, 8) and schedule.field("pack") == ()


def test_rows_and_elementwise_tiles() -> None:
    assert scheduled(softmax("s", 64, 100)).field("tile") == (4, 8)
    k = KernelText("e", "elementwise<>")
    k.arg("x", (100,), "f64")
    k.arg("out", (100,), "f64")
    k.generic("i", [("x", "i")], ("out", "i"), "%r = arith.negf %a0 : f64")
    assert scheduled(k.done()).field("tile") == (8,)


@pytest.mark.parametrize(("n", "most", "least", "runs"), [
    (64, 6, 4, [(0, 16, 4)]), (64, 6, 5, [(0, 9, 6), (54, 2, 5)]), (12, 6, 4, [(0, 2, 6)]), (7, 6, 4, [(0, 1, 4), (4, 1, 3)]),
    (3, 6, 4, [(0, 1, 3)]), (0, 6, 4, []), (1, 6, 4, [(0, 1, 1)]),
])  # fmt: skip
def test_rows_are_split_evenly(n: int, most: int, least: int, runs: list[tuple[int, int, int]]) -> None:
    assert even_split(n, most, least) == runs


def test_a_module_without_a_target_is_taken_for_avx2() -> None:
    assert machine_of(ModuleOp([])) == Machine(lanes=8, registers=16, threads=1)
