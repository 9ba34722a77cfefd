"""A product of one warp on tensor cores, written by hand at level 4: for the evaluator, the emitter and upstream."""

from __future__ import annotations


def product_kernel(element: str, sums: str, depth: int, *, wait: int = 0, transposed: bool = False) -> str:
    """`c[16, 8] = a[16, depth] @ b[8, depth]^T` (with `transposed` b is `[depth, 8]`), copied asynchronously, one `mma.sync`."""
    width = {"bf16": 2, "f16": 2, "f32": 1, "i8": 4}[element]
    chunk = 4 * width
    tf32 = ", tf32Enabled" if element == "f32" else ""
    b_shape = f"{depth}x8" if transposed else f"8x{depth}"
    b_row, b_column = ("%row", "%zero") if transposed else ("%seven", "%half")
    return f"""
builtin.module attributes {{gradir.target = #target.cuda<"sm_80">, gpu.container_module}} {{
  gpu.module @kernels {{
    gpu.func @product(%a: memref<16x{depth}x{element}> {{gradir.access = "read"}}, %b: memref<{b_shape}x{element}> {{gradir.access = "read"}},
        %c: memref<16x8x{sums}> {{gradir.access = "write"}}) workgroup(%sb: memref<{b_shape}x{element}, #gpu.address_space<workgroup>>)
        kernel attributes {{known_block_size = array<i32: 32, 1, 1>}} {{
      %zero = arith.constant 0 : index
      %two = arith.constant 2 : index
      %four = arith.constant 4 : index
      %eight = arith.constant 8 : index
      %sixteen = arith.constant 16 : index
      %chunk = arith.constant {chunk} : index
      %width = arith.constant {chunk} : index
      %acc = arith.constant dense<0{".0" if sums == "f32" else ""}> : vector<2x2x{sums}>
      %lane = gpu.thread_id x
      %dynamic = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %sa = memref.view %dynamic[%zero][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<16x{depth}x{element}, #gpu.address_space<workgroup>>
      %row = arith.remui %lane, %sixteen : index
      %side = arith.divui %lane, %sixteen : index
      %column = arith.muli %side, %width : index
      %last = arith.constant 15 : index
      %other = arith.subi %last, %row : index
      %t0 = nvgpu.device_async_copy %a[%other, %column], %sa[%other, %column], {chunk}, %chunk {{bypassL1}} : memref<16x{depth}x{element}> to memref<16x{depth}x{element}, #gpu.address_space<workgroup>>
      %seven = arith.remui %lane, %eight : index
      %quarter = arith.divui %lane, %eight : index
      %odd = arith.remui %quarter, %two : index
      %half = arith.muli %odd, %width : index
      %first = arith.cmpi ult, %lane, %sixteen : index
      scf.if %first {{
        %t1 = nvgpu.device_async_copy %b[{b_row}, {b_column}], %sb[{b_row}, {b_column}], {chunk} : memref<{b_shape}x{element}> to memref<{b_shape}x{element}, #gpu.address_space<workgroup>>
      }}
      %g = nvgpu.device_async_create_group %t0
      nvgpu.device_async_wait %g {{numGroups = {wait} : i32}}
      gpu.barrier
      %fa = nvgpu.ldmatrix %sa[%row, %column] {{numTiles = 4 : i32, transpose = false}} : memref<16x{depth}x{element}, #gpu.address_space<workgroup>> -> vector<4x{width}x{element}>
      %fb = nvgpu.ldmatrix %sb[{b_row}, {b_column}] {{numTiles = 2 : i32, transpose = {str(transposed).lower()}}} : memref<{b_shape}x{element}, #gpu.address_space<workgroup>> -> vector<2x{width}x{element}>
      %d = nvgpu.mma.sync(%fa, %fb, %acc) {{mmaShape = [16, 8, {depth}]{tf32}}} : (vector<4x{width}x{element}>, vector<2x{width}x{element}>, vector<2x2x{sums}>) -> vector<2x2x{sums}>
      %g4 = arith.divui %lane, %four : index
      %t4 = arith.remui %lane, %four : index
      %n = arith.muli %t4, %two : index
      %low = vector.extract %d[0] : vector<2x{sums}> from vector<2x2x{sums}>
      %high = vector.extract %d[1] : vector<2x{sums}> from vector<2x2x{sums}>
      vector.store %low, %c[%g4, %n] : memref<16x8x{sums}>, vector<2x{sums}>
      %below = arith.addi %g4, %eight : index
      vector.store %high, %c[%below, %n] : memref<16x8x{sums}>, vector<2x{sums}>
      gpu.return
    }}
  }}
  func.func @f(%a: memref<16x{depth}x{element}>, %b: memref<{b_shape}x{element}>, %c: memref<16x8x{sums}>)
      attributes {{gradir.inputs = 2 : i64, gradir.results = 1 : i64}} {{
    %one = arith.constant 1 : index
    %threads = arith.constant 32 : index
    %bytes = arith.constant {16 * 16 * 2} : i32
    gpu.launch_func @kernels::@product blocks in (%one, %one, %one) threads in (%threads, %one, %one) dynamic_shared_memory_size %bytes
      args(%a : memref<16x{depth}x{element}>, %b : memref<{b_shape}x{element}>, %c : memref<16x8x{sums}>)
    func.return
  }}
}}
"""
