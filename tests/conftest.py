"""What holds for every test: no cache of the user is read or written, so that each program is compiled by the code under test."""

from __future__ import annotations

import os

from gradir.driver.cache import DIRECTORY_VARIABLE


def pytest_configure() -> None:
    os.environ[DIRECTORY_VARIABLE] = ""  # children of a test (subprocesses, lit) inherit it; tests of the caches name a folder
