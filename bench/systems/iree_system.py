"""IREE: StableHLO exported by JAX, gradients included, compiled for this CPU and run by its runtime."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import numpy as np
from iree import compiler, runtime

from bench.exports import export_path
from bench.systems import Cell, NotAvailable, as_tuple, caches_allowed
from bench.workloads import Workload

FLAGS = [
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-opt-data-tiling",  # far better here than -O3 or the defaults
]


PLAIN = [*FLAGS[:-1], "--iree-opt-level=O3"]
"""Where data tiling ends in an error of the compiler."""


class IreeSystem:
    """The first call compiles; inputs lie on the device."""

    def __init__(self, threads: int) -> None:
        self.config = runtime.Config("local-task" if threads > 1 else "local-sync")

    def version(self) -> str:
        return importlib.metadata.version("iree-base-compiler")

    def prepare(self, w: Workload, dtype: Any = np.float32) -> Cell:
        path = export_path(w.name, "mlirbc")
        if not path.exists():
            raise NotAvailable("JAX cannot export it" if path.parent.exists() else "needs JAX for the export")
        box: dict[str, Any] = {}

        def compiled() -> bytes:
            kept = path.with_suffix(".vmfb")
            if caches_allowed() and kept.exists():
                return kept.read_bytes()
            try:
                code = compiler.compile_file(str(path), input_type="stablehlo", extra_args=FLAGS)
            except compiler.CompilerToolError:
                code = compiler.compile_file(str(path), input_type="stablehlo", extra_args=PLAIN)
            kept.write_bytes(code)
            return code

        def first() -> None:
            context = runtime.SystemContext(config=self.config)
            module = runtime.VmModule.copy_buffer(context.instance, compiled())
            context.add_vm_module(module)
            box["function"] = context.modules[module.name]["main"]
            box["inputs"] = [runtime.asdevicearray(self.config.device, x) for x in w.inputs()]

        def call() -> None:
            if not box:
                first()
            box["out"] = as_tuple(box["function"](*box["inputs"]))

        def outputs() -> list[np.ndarray]:
            return [np.asarray(x.to_host()) for x in box["out"]]

        return Cell(call, outputs, "gradient by JAX" if w.training else "", close=box.clear)
