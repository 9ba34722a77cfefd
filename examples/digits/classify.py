"""Classify the test set with a saved artefact; runs with xDSL banned, so only the runtime can be at work.

python classify.py build/digits.gradir  ->  {"mlp": 0.98, "cnn": 0.99}
"""

from __future__ import annotations

import json
import sys

import data
import numpy as np


class Ban:
    """Refuses to import xDSL."""

    def find_spec(self, name: str, *_: object) -> None:
        if name.split(".")[0] == "xdsl":
            raise ImportError("xdsl is banned in this process")


def main(path: str) -> None:
    """Print the accuracy of each function of the artefact."""
    sys.meta_path.insert(0, Ban())
    import gradir.runtime  # after the ban

    module = gradir.runtime.load(path)
    digits = data.load()
    accuracy = {name: float(np.mean(np.argmax(module[name](digits.test_x), -1) == digits.test_y)) for name in ("mlp", "cnn")}
    print(json.dumps(accuracy))


if __name__ == "__main__":
    main(sys.argv[1])
