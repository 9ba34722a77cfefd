"""`python -m bench.stablehlo_import [--megabytes 500]`: how long importing StableHLO takes, and how much memory its constants need.

Prints a table: a transformer's train step (forward, backward, Adam; 240 KB of text; needs jax, which prints it) and a module of constants
in both spellings, each in a process of its own. Time is that of the processor.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

IMPORT = """
import json, resource, sys, time
from gradir.frontends.stablehlo import import_file, import_text
import_text("func.func public @main() -> tensor<f32> {\\n %0 = stablehlo.constant dense<1.0> : tensor<f32>\\n return %0 : tensor<f32>\\n}")
with open("/proc/self/statm") as file:
    before = int(file.read().split()[1]) * resource.getpagesize()
began = time.process_time()
module = import_file(sys.argv[1])
seconds = time.process_time() - began
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
print(json.dumps([seconds, grown, sum(1 for _ in module.walk())]))
"""
LAYERS, WIDTH, VOCABULARY, ROUNDS = 4, 32, 64, 5


def measure(path: Path) -> tuple[float, int, int]:
    """Seconds, bytes that the process grew by, ops."""
    done = subprocess.run([sys.executable, "-c", IMPORT, str(path)], capture_output=True, text=True, check=True)
    seconds, grown, ops = json.loads(done.stdout)
    return seconds, grown, ops


def train_step() -> str:
    """The text of a transformer's train step."""
    import jax
    import jax.numpy as jnp

    def parameters(draw: np.random.Generator) -> dict:
        def normal(*shape: int) -> np.ndarray:
            return draw.normal(scale=0.02, size=shape).astype(np.float32)

        d, ones, zeros = WIDTH, np.ones, np.zeros
        layers = [
            {"qkv": normal(d, 3 * d), "o": normal(d, d), "w1": normal(d, 4 * d), "b1": zeros(4 * d, "f"), "w2": normal(4 * d, d)}
            | {"b2": zeros(d, "f"), "g1": ones(d, "f"), "c1": zeros(d, "f"), "g2": ones(d, "f"), "c2": zeros(d, "f")}
            for _ in range(LAYERS)
        ]
        return {"embed": normal(VOCABULARY, d), "layers": layers}

    def norm(x, scale, bias):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * scale + bias

    def layer(p, x, heads=4):
        b, t, d = x.shape
        q, k, v = (z.reshape(b, t, heads, d // heads).transpose(0, 2, 1, 3) for z in jnp.split(norm(x, p["g1"], p["c1"]) @ p["qkv"], 3, -1))
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), q @ k.transpose(0, 1, 3, 2) / np.sqrt(d // heads), -1e9)
        x = x + (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(b, t, d) @ p["o"]
        return x + jax.nn.gelu(norm(x, p["g2"], p["c2"]) @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]

    def loss(p, tokens):
        x = p["embed"][tokens[:, :-1]]
        for row in p["layers"]:
            x = layer(row, x)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x @ p["embed"].T), tokens[:, 1:, None], -1))

    def step(p, m, v, i, tokens):
        value, g = jax.value_and_grad(loss)(p, tokens)
        m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
        v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
        p = jax.tree.map(lambda a, b, c: a - 1e-3 * (b / (1 - 0.9**i)) / (jnp.sqrt(c / (1 - 0.999**i)) + 1e-8), p, m, v)
        return value, p, m, v

    p = parameters(np.random.default_rng(0))
    zeros = jax.tree.map(np.zeros_like, p)
    return jax.jit(step).lower(p, zeros, zeros, np.float32(1), np.zeros((2, 9), np.int32)).as_text()


def write_constants(path: Path, megabytes: int, *, resource: bool) -> None:
    """A module that holds so many MB of numbers, as a dense literal or as a resource."""
    piece = np.random.default_rng(0).integers(0, 256, 1 << 20, np.uint8).tobytes().hex()
    kind = f"tensor<{megabytes << 20}xui8>"
    with path.open("w") as file:
        file.write(f"func.func public @main() -> {kind} {{\n  %0 = stablehlo.constant ")
        file.write("dense_resource<w>" if resource else 'dense<"0x')
        file.writelines([] if resource else [piece] * megabytes)
        file.write(("" if resource else '">') + f" : {kind}\n  return %0 : {kind}\n}}\n")
        if resource:
            file.write('{-#\n  dialect_resources: {\n    builtin: {\n      w: "0x01000000')
            file.writelines([piece] * megabytes)
            file.write('"\n    }\n  }\n#-}\n')


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Import of StableHLO: time and memory.")
    parser.add_argument("--megabytes", type=int, default=500)
    megabytes = parser.parse_args().megabytes
    print("| module | text | ops | import | memory | over the constants |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        if importlib.util.find_spec("jax") is not None:
            path = Path(folder) / "step.mlir"
            path.write_text(train_step())
            seconds, grown, ops = min(measure(path) for _ in range(ROUNDS))
            print(f"| transformer train step | {path.stat().st_size >> 10} KB | {ops} | {seconds:.2f} s | {grown >> 20} MB | |")
        for name in ("dense literal", "resource"):
            path = Path(folder) / "constants.mlir"
            write_constants(path, megabytes, resource=name == "resource")
            seconds, grown, ops = measure(path)
            row = f"| {megabytes} MB of constants, {name} | {path.stat().st_size >> 20} MB | {ops} | {seconds:.2f} s"
            print(f"{row} | {grown >> 20} MB | {grown / (megabytes << 20):.2f} |", flush=True)


if __name__ == "__main__":
    main()
