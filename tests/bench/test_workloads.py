"""The workloads: one definition, the same result from every adapter that runs here, errors that are noticed. Nothing is timed."""

from __future__ import annotations

import numpy as np
import pytest

import gradir as gd
from bench import references
from bench.references import agrees_with_differences, error
from bench.systems.gradir_system import GradirOps, GradirSystem
from bench.systems.numpy_system import NumpyOps, NumpySystem
from bench.workloads import COMPARED, WORKLOADS, Workload, normal

CHEAP = (
    "overhead_add8", "gemm_128", "digits_mlp_step", "newton", "newton_grad", "mandelbrot_512", "conv3x3_b1", "cumsum_4096x1024",
    "recurrence_1024x2048", "gemm_i8_1024",
)  # fmt: skip
HARNESS = (
    "overhead_add8", "gemm_128", "gemm_512", "gemm_1024", "gemm_2048", "gemv_1x4096x4096", "gemm_bias_gelu", "chain_1e6", "chain_16e6",
    "softmax_4096x1024", "layernorm_4096x1024", "sum_axis0_4096", "sum_axis1_4096", "mlp_infer", "mlp_train", "conv3x3_b1", "conv3x3_b8",
    "resnet_infer", "resnet_train", "attention_12x512x64", "block_infer", "block_train", "lstm_forward", "lstm_grad", "newton",
    "newton_grad", "mandelbrot_512",
)  # fmt: skip


def reduced(name: str, *inputs: np.ndarray, params: int = 0, kind: str = "forward", compare: str = "max") -> Workload:
    """The workload `name` on other inputs."""
    w = WORKLOADS[name]
    return Workload(f"{name}_reduced", w.group, kind, w.fn, lambda: [x.copy() for x in inputs], params, compare=compare, rate=w.rate)


def run(w: Workload, dtype: type = np.float32) -> list[np.ndarray]:
    cell = GradirSystem(1).prepare(w, dtype)
    cell.call()
    return cell.outputs()


def expected(w: Workload) -> list[np.ndarray]:
    cell = NumpySystem(1).prepare(w, np.float64)
    cell.call()
    return cell.outputs()


REDUCED = {
    w.name: w
    for w in (
        reduced("gemm_bias_gelu", normal(0, 5, 7), normal(1, 7, 9), normal(2, 9)),
        reduced("chain_1e6", *(normal(k, 37) for k in range(3))),
        reduced("softmax_4096x1024", normal(0, 3, 17)),
        reduced("layernorm_4096x1024", normal(0, 3, 17), normal(1, 17), normal(2, 17)),
        reduced("sum_axis0_4096", normal(0, 6, 5)),
        reduced("sum_axis1_4096", normal(0, 6, 5)),
        reduced("conv3x3_b8", normal(0, 4, 3, 3, 3), normal(1, 2, 3, 6, 5)),
        reduced("attention_12x512x64", *(normal(k, 1, 2, 9, 4) for k in range(3))),
        reduced("lstm_forward", normal(0, 3, 8), normal(1, 2, 8), normal(2, 8), normal(3, 5, 4, 3)),
        reduced("conv_depthwise", normal(0, 4, 1, 3, 3), normal(1, 2, 4, 5, 6)),
        reduced("embedding", normal(0, 11, 3), np.array([[0, 10, 3], [3, 3, 1]], np.int32)),
        reduced("top_k_512x8192", normal(0, 4, 33)),
        reduced("cumsum_4096x1024", normal(0, 4, 33)),
        reduced("recurrence_1024x2048", normal(0, 6, 5, scale=0.3), normal(1, 6, 5)),
        reduced("gemm_i8_1024", np.array([[-128, 127, 3]], np.int8), np.array([[-128, 1], [127, 2], [0, 3]], np.int8)),
        reduced("mlp_infer", *(normal(k, *s) for k, s in enumerate([(6, 5), (5,), (5, 4), (4,), (4, 3), (3,), (7, 6)]))),
    )
}


def test_the_27_of_the_comparison_are_there() -> None:
    assert COMPARED == HARNESS or set(COMPARED) == set(HARNESS)
    assert len(COMPARED) == 27


@pytest.mark.parametrize("name", REDUCED)
def test_reduced_workloads_agree_with_numpy_in_f64(name: str) -> None:
    w = REDUCED[name]
    got, want = run(w), expected(w)
    assert error(w, got, want) < (1e-6 if want[0].dtype.kind == "f" else 1e-30)


def test_bf16_products_round_once() -> None:
    w = WORKLOADS["gemm_bf16_1024"]
    a, b = (x[:17, :17] for x in w.inputs())
    small = reduced("gemm_bf16_1024", np.ascontiguousarray(a), np.ascontiguousarray(b))
    (got,), (want,) = run(small), expected(small)
    assert got.dtype.name == "bfloat16"
    assert np.all(np.abs(got.astype(np.float64) - want) <= 2.0**-8 * np.abs(want) + 1e-6)


@pytest.mark.parametrize("name", ["lstm_grad", "newton_grad"])
def test_gradients_agree_with_differences_of_numpys_loss(name: str) -> None:
    inputs = {"lstm_grad": (normal(0, 3, 8), normal(1, 2, 8), normal(2, 8), normal(3, 5, 4, 3)), "newton_grad": (np.float32([0.7, 2, 3]),)}
    w = reduced(name, *inputs[name], params=len(inputs[name]) - (name == "lstm_grad"), kind="grad")
    outputs = run(w, np.float64)
    assert agrees_with_differences(w, outputs)
    outputs[1] = outputs[1] * 1.01
    assert not agrees_with_differences(w, outputs)


def test_the_update_of_a_training_step_is_what_counts() -> None:
    w = reduced(
        "mlp_train",
        *REDUCED["mlp_infer_reduced"].inputs(),
        np.array([0, 1, 2, 0, 1, 2, 0], np.int32),
        params=6,
        kind="train",
        compare="update",
    )
    exact = run(w, np.float64)
    assert agrees_with_differences(w, exact)
    assert error(w, run(w), exact) < 1e-5
    inputs = w.inputs()
    unchanged = [exact[0], *inputs[:6]]
    assert error(w, unchanged, exact) > 0.9  # parameters that stay are as good as no gradient at all


def test_numpys_hand_written_step_is_the_gradient() -> None:
    w = WORKLOADS["mlp_train"]
    cell = NumpySystem(1).prepare(w, np.float64)
    cell.call()
    assert agrees_with_differences(w, cell.outputs())


def test_wrong_results_are_told_apart() -> None:
    w = REDUCED["softmax_4096x1024_reduced"]
    want = expected(w)
    assert error(w, want, want) == 0
    assert error(w, [want[0] + 1e-3], want) == pytest.approx(1e-3 / want[0].max())
    assert error(w, [want[0][:2]], want) == float("inf")
    assert error(w, [], want) == float("inf")
    assert error(w, [np.full_like(want[0], np.nan)], want) == float("inf")
    share = reduced("mandelbrot_512", np.zeros((2, 2), np.float32), np.zeros((2, 2), np.float32), compare="share")
    assert error(share, [np.array([1.0, 2, 3, 4])], [np.array([1.0, 2, 3, 5])]) == 0.25


@pytest.mark.full
@pytest.mark.parametrize("name", CHEAP)
def test_whole_workloads_agree_with_their_references(name: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "BUILD", tmp_path)
    references._folder.cache_clear()
    w = WORKLOADS[name]
    assert error(w, run(w), references.reference(w)) <= w.tolerance
    references._folder.cache_clear()


def test_both_op_sets_have_every_op_that_workloads_ask_for() -> None:
    asked = {
        "add matmul linear relu tanh sigmoid abs max any sqrt ones_like where both as_f32 sum mean reshape transpose gelu softmax",
        "layer_norm batch_norm conv conv_nhwc max_pool_nhwc depthwise cross_entropy scan while_loop attention lstm newton mandelbrot",
        "recurrence take top_k cumsum matmul_i8 matmul_bf16",
    }
    for names in asked:
        for name in names.split():
            assert callable(getattr(NumpyOps(), name)), name
            assert callable(getattr(GradirOps(), name)), name
    assert GradirOps().value_and_grad is not gd.value_and_grad
