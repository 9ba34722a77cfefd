"""A share of StableHLO's own test data in the evaluator; all of it, compiled too, is docs/status/stablehlo.md."""

import pytest

from gradir.tools.stablehlo_status import op_of, page
from gradir.tools.stablehlo_suite import ARCHIVE, SUITES_VARIABLE, Outcome, cases, run_case, suites_folder

FOLDER = suites_folder()
EVERY = 15
"""One case in so many runs here."""


@pytest.mark.skipif(
    FOLDER is None or not (FOLDER / ARCHIVE).is_file(), reason=f"no {ARCHIVE}: set {SUITES_VARIABLE} to the folder of the suites"
)
def test_a_share_of_the_cases_passes_in_the_evaluator() -> None:
    assert FOLDER is not None
    with cases(FOLDER / ARCHIVE) as paths:
        outcomes = [run_case(path, cpu=False) for path in paths[::EVERY]]
    wrong = [outcome for outcome in outcomes if outcome.reference in ("fail", "error")]
    assert not wrong
    assert sum(outcome.reference == "pass" for outcome in outcomes) > 0.7 * len(outcomes)


def test_a_case_is_named_for_its_primitive() -> None:
    assert op_of("reduce_max_float32_4_8.mlir") == "reduce_max"
    assert op_of("shift_left_uint8_3.mlir") == "shift_left"
    assert op_of("cumsum_bfloat16_8_9.mlir") == "cumsum"


def test_page_counts_and_names() -> None:
    text = page(
        [
            Outcome("abs_float32_3.mlir", "pass", "pass"),
            Outcome("abs_int32_3.mlir", "pass", "fail", "1 of 3 elements of result 0 differ"),
            Outcome("fft_complex64_3.mlir", "unsupported", "unsupported", "element type complex<f32>"),
        ],
        ["abs_int32_3.mlir"],
    )
    assert "| abs | 2 | 2 (100.0 %) | 1 (50.0 %) | 0 |" in text
    assert "| all | 3 | 2 (66.7 %) | 1 (33.3 %) | 1 |" in text
    assert "| element type complex&lt;f32> | 1 |" in text
    assert (
        "| abs_int32_3.mlir | pass | fail | 1 of 3 elements of result 0 differ (jaxlib's own reference does not pass it either) |" in text
    )
