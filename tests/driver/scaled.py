"""A level-4 module written by hand: one kernel called twice through the arena. What the driver is tested with below the passes."""

from __future__ import annotations

KERNEL = """
  func.func private @{name}(%x: memref<64x32xf32>, %s: f32, %out: memref<64x32xf32>) attributes {{gradir.kernel = #kernel.elementwise<>}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %c32 = arith.constant 32 : index
    scf.parallel (%i) = (%c0) to (%c64) step (%c1) {{
      scf.for %j = %c0 to %c32 step %c8 {{
        %v = vector.load %x[%i, %j] : memref<64x32xf32>, vector<8xf32>
        %b = vector.broadcast %s : f32 to vector<8xf32>
        %w = arith.{op} %v, %b : vector<8xf32>
        vector.store %w, %out[%i, %j] : memref<64x32xf32>, vector<8xf32>
      }}
      scf.reduce
    }}
    return
  }}
"""


def scaled(first: float = 2.0, second: float = 3.0, *, name: str = "scale", op: str = "mulf", marks: bool = True) -> str:
    """`f(x) = x op first op second` for a 64x32 f32 array, at level 4."""
    attributes = "attributes {gradir.inputs = 1 : i64, gradir.results = 1 : i64, gradir.arena = 8192 : i64}" if marks else ""
    call = f"func.call @{name}(%{{}}, %{{}}, %{{}}) : (memref<64x32xf32>, f32, memref<64x32xf32>) -> ()"
    return f"""
module {{
{KERNEL.format(name=name, op=op)}
  func.func @f(%x: memref<64x32xf32>, %out: memref<64x32xf32>, %arena: memref<8192xi8>) {attributes} {{
    %a = arith.constant {first} : f32
    %b = arith.constant {second} : f32
    %o0 = arith.constant 0 : index
    %h = memref.view %arena[%o0][] : memref<8192xi8> to memref<64x32xf32>
    {call.format("x", "a", "h")}
    {call.format("h", "b", "out")}
    return
  }}
}}
"""
