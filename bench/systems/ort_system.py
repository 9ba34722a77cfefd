"""ONNX Runtime: ONNX exported by PyTorch, parameters as initializers. Inference only."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime

from bench.exports import export_path
from bench.systems import Cell, NotAvailable
from bench.workloads import Workload


class OrtSystem:
    """The first call makes the session, which optimises the graph and packs the initializers."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def version(self) -> str:
        return onnxruntime.__version__

    def prepare(self, w: Workload, dtype: Any = np.float32) -> Cell:
        if w.training:
            raise NotAvailable("no training in the package")
        path = export_path(w.name, "onnx")
        if not path.exists():
            raise NotAvailable("PyTorch cannot export it" if path.parent.exists() else "needs PyTorch for the export")
        inputs = w.inputs()[w.params :]
        box: dict[str, Any] = {}

        def call() -> None:
            if not box:
                options = onnxruntime.SessionOptions()
                options.intra_op_num_threads, options.log_severity_level = self.threads, 3
                session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
                kinds = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
                feeds = {i.name: x.astype(kinds[i.type]) if i.type in kinds else x for i, x in zip(session.get_inputs(), inputs)}
                box.update(session=session, feeds=feeds)
            box["out"] = box["session"].run(None, box["feeds"])

        return Cell(call, lambda: list(box["out"]), close=box.clear)
