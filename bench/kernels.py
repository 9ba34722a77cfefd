"""`python -m bench.kernels FILE.mlir [--entry NAME]`: the kernels of a program, each compiled and timed alone, slowest first.

Multiply-adds are counted from the loop extents of its linalg ops; calls are those in the entry function (loops not counted).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from xdsl.dialects.builtin import FunctionType, IntegerAttr, MemRefType, ModuleOp, SymbolRefAttr, i64
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block

from gradir.dialects.types import numpy_dtype
from gradir.dialects.upstream import linalg
from gradir.driver.compile import compile_module
from gradir.driver.lower import lower
from gradir.ir.builder import Builder, new_function
from gradir.runtime.module import Module


def alone(kernel: FuncOp, target: ModuleOp) -> Module:
    """A module with a public function that calls `kernel` with its arguments; all of them count as inputs."""
    kernel = contiguous(kernel)
    block = Block(arg_types=[a.type for a in kernel.body.block.args])
    builder = Builder(block)
    builder.op(CallOp, list(block.args), [], {"callee": SymbolRefAttr(kernel.sym_name.data)})
    builder.op(ReturnOp)
    counts = {"gradir.inputs": IntegerAttr(len(block.args), i64), "gradir.results": IntegerAttr(0, i64)}
    module = ModuleOp([kernel, new_function("run", block, [], attributes=counts)], attributes=dict(target.attributes))
    return compile_module(module, cache=False, threads=1)


def contiguous(kernel: FuncOp) -> FuncOp:
    """A copy whose arguments have no strides of their own."""
    copy = kernel.clone()
    block = copy.body.block
    for arg in block.args:
        if isinstance(arg.type, MemRefType):
            block.args[arg.index]._type = MemRefType(arg.type.element_type, arg.type.get_shape())
    copy.properties["function_type"] = FunctionType.from_lists([a.type for a in block.args], [])
    return copy


def work(kernel: FuncOp) -> int:
    """Scalar operations: loop extents times arithmetic ops in the body, over all nests."""
    total = 0
    for op in kernel.walk():
        if isinstance(op, linalg.GenericOp):
            extents: dict[int, int] = {}
            for value, attr in zip(op.operands, op.indexing_maps.data):
                for size, form in zip(value.type.get_shape(), attr.data.results):
                    if hasattr(form, "position"):
                        extents[form.position] = size
            total += int(np.prod(list(extents.values()), dtype=np.int64)) * sum(
                1 for o in op.body.block.ops if o.name.startswith(("arith.", "math."))
            )
    return total


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.kernels", description=__doc__)
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    module = lower(options.file.read_text(), target="host", threads=1, last="buffers")
    kernels = {f.sym_name.data: f for f in module.body.block.ops if isinstance(f, FuncOp) and "gradir.kernel" in f.attributes}
    calls: dict[str, int] = {}
    for op in module.walk():
        if isinstance(op, CallOp):
            calls[op.callee.string_value()] = calls.get(op.callee.string_value(), 0) + 1
    rows = []
    for name, kernel in kernels.items():
        rng = np.random.default_rng(0)
        args = []
        for a in kernel.body.block.args:
            t = a.type
            dtype = numpy_dtype(t.element_type if isinstance(t, MemRefType) else t)
            shape = t.get_shape() if isinstance(t, MemRefType) else ()
            args.append((rng.random(shape) * 2).astype(dtype))
        try:
            f = alone(kernel, module)["run"]
            f(*args)
        except Exception as error:
            rows.append((0.0, name, f"{type(error).__name__}: {error}"[:60], 0))
            continue
        times = []
        until = time.perf_counter() + 0.2
        while time.perf_counter() < until:
            began = time.perf_counter()
            f(*args)
            times.append(time.perf_counter() - began)
        rows.append((float(np.percentile(times, 10)) * calls.get(name, 0), name, str(kernel.attributes["gradir.kernel"]), work(kernel)))
    table = Table("kernel", "us in all", "calls", "Gop/s", "schedule")
    for seconds, name, schedule, ops in sorted(rows, reverse=True):
        table.add_row(
            name,
            f"{seconds * 1e6:.1f}",
            str(calls.get(name, 0)),
            f"{ops * calls.get(name, 0) / seconds / 1e9:.1f}" if seconds else "",
            schedule,
        )
    Console(width=150).print(table, f"total {sum(r[0] for r in rows) * 1e6:.0f} us")


if __name__ == "__main__":
    main()
