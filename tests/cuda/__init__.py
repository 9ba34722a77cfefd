"""Programs for CUDA: on the emulated device always, on a real one where GRADIR_TEST_DEVICE says so (`cuda`, `cuda:1`)."""

import os

DEVICE = os.environ.get("GRADIR_TEST_DEVICE", "cuda:emulated")
