"""What JAX computes for the programs of the suite, on inputs that are the same everywhere.

`python tests/frontends_stablehlo/jax_reference.py FOLDER` writes `jax_results.npz` beside this file; it needs jax, the tests do not.
"""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="no jax")

RESULTS = Path(__file__).with_name("jax_results.npz")
DTYPES = {"f32": np.float32, "i32": np.int32, "ui32": np.uint32, "i1": np.bool_}


def inputs_of(text: str) -> list[np.ndarray]:
    """Arrays for the arguments of `@main`: floats of standard deviation 1/2, small whole numbers."""
    rng = np.random.default_rng(7)
    signature = text[text.index("@main(") : text.index("->", text.index("@main("))]
    arrays = []
    for shape in re.findall(r"tensor<([^>]*)>", signature):
        *sizes, element = shape.split("x")
        dtype, dims = DTYPES[element], [int(n) for n in sizes]
        drawn = rng.normal(scale=0.5, size=dims) if dtype is np.float32 else rng.integers(0, 2, size=dims)
        arrays.append(np.asarray(drawn).astype(dtype))
    return arrays


def run_with_jax(text: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The results of `@main`, compiled by XLA."""
    import jax

    jax.config.update("jax_enable_x64", True)  # also keeps the 64-bit inputs as they are
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib.mlir import ir

    client = jax.devices("cpu")[0].client
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        devices = xla_client.DeviceList(tuple(jax.devices("cpu")[:1]))
        compiled = client.compile_and_load(module, devices, xla_client.CompileOptions())
    results = compiled.execute([jax.device_put(array) for array in arrays])
    return [np.asarray(result) for result in results]


def main() -> None:
    """Write the results of every program."""
    found = {}
    for path in sorted(Path(sys.argv[1]).glob("*.mlir")):
        text = path.read_text()
        for i, result in enumerate(run_with_jax(text, inputs_of(text))):
            found[f"{path.stem}/{i}"] = result
    np.savez_compressed(RESULTS, **found)


if __name__ == "__main__":
    main()
