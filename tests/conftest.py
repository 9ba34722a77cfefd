"""What holds for every test: no cache of the user is read or written, so that each program is compiled by the code under test.

The fixed sample of `make test` takes every n-th of the very many tests that come from samples of ops; `make test-full` runs all.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from gradir.driver.cache import DIRECTORY_VARIABLE

ONE_IN = {
    "autodiff/test_batching.py": 4,
    "autodiff/test_table.py": 6,
    "dialects/test_simplify.py": 4,
    "dialects/test_samples.py": 2,
    "frontends_stablehlo/test_export.py": 3,
    "lowering/test_structured_meaning.py": 2,
    "targets/test_other_processors.py": 3,
}
"""File -> n: of each test that is generated from samples there, every n-th is in the fixed sample."""


def pytest_configure() -> None:
    os.environ[DIRECTORY_VARIABLE] = ""  # children of a test (subprocesses, lit) inherit it; tests of the caches name a folder


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as `full` what the fixed sample leaves out; the same ones in every process."""
    seen: Counter[str] = Counter()
    for item in items:
        step = next((n for name, n in ONE_IN.items() if item.path.as_posix().endswith(f"tests/{name}")), 1)
        base = item.nodeid.partition("[")[0]
        if step > 1 and base != item.nodeid:
            if seen[base] % step:
                item.add_marker(pytest.mark.full)
            seen[base] += 1
