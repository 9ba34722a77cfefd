"""A product of warpgroups written by hand at level 4: a ring of tensor copies, one producer warpgroup, two that multiply, results by tensor copies."""

from __future__ import annotations

ROWS, COLUMNS, DEPTH, STAGES = 128, 128, 64, 3
THREADS = 384
LEFT, RIGHT, SUMS = ROWS * DEPTH * 2, COLUMNS * DEPTH * 2, ROWS * COLUMNS * 4
SHARED = STAGES * (LEFT + RIGHT) + SUMS
_W = "#gpu.address_space<workgroup>"


def _map(shape: str, swizzle: str) -> str:
    return (
        f"!nvgpu.tensormap.descriptor<tensor = memref<{shape}, {_W}>, swizzle = {swizzle}, l2promo = none, oob = zero, interleave = none>"
    )


def gemm(m: int, n: int, k: int, element: str = "bf16") -> str:
    """`c[m, n] = a[m, k] @ b[n, k]^T` in f32, blocks of 128 x 128; strides have to be multiples of 16 bytes, sizes need not be of blocks."""
    group = f"!nvgpu.mbarrier.group<memorySpace = {_W}, num_barriers = {STAGES}>"
    tile = f"{ROWS}x{DEPTH}x{element}"
    map_in, map_out = _map(tile, "swizzle_128b"), _map(f"64x{COLUMNS}xf32", "none")
    half = f"memref<64x{DEPTH}x{element}, strided<[{DEPTH}, 1], offset: ?>, {_W}>"
    stage = f"memref<{ROWS}x{DEPTH}x{element}, strided<[{DEPTH}, 1], offset: ?>, {_W}>"
    ring = f"memref<{STAGES}x{tile}, {_W}>"
    bytes_ = f"memref<?xi8, {_W}>"
    acc = f"!nvgpu.warpgroup.accumulator<fragmented = vector<64x{COLUMNS}xf32>>"
    left = f"!nvgpu.warpgroup.descriptor<tensor = memref<64x{DEPTH}x{element}, {_W}>>"
    right = f"!nvgpu.warpgroup.descriptor<tensor = memref<{DEPTH}x{COLUMNS}x{element}, {_W}>>"
    out = f"memref<64x{COLUMNS}xf32, strided<[{COLUMNS}, 1], offset: ?>, {_W}>"
    turn = """
          %more = arith.addi %stage, %one : index
          %last = arith.cmpi eq, %more, %stages : index
          %next = arith.select %last, %zero, %more : index
          %flipped = arith.xori %parity, %last : i1"""
    inits = "\n".join(
        f"        nvgpu.mbarrier.init %full[%s{s}], %one : {group}\n        nvgpu.mbarrier.init %empty[%s{s}], %readers : {group}"
        for s in range(STAGES)
    )
    numbers = "\n".join(f"      %s{s} = arith.constant {s} : index" for s in range(STAGES))
    return f"""
builtin.module attributes {{gradir.target = #target.cuda<"sm_90a">, gpu.container_module}} {{
  gpu.module @kernels {{
    gpu.func @gemm(%ta: {map_in} {{gradir.access = "read"}}, %tb: {map_in} {{gradir.access = "read"}}, %tc: {map_out} {{gradir.access = "write"}})
        kernel attributes {{known_block_size = array<i32: {THREADS}, 1, 1>}} {{
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %stages = arith.constant {STAGES} : index
      %steps = arith.constant {-(-k // DEPTH)} : index
      %depth = arith.constant {DEPTH} : index
      %rows = arith.constant {ROWS} : index
      %columns = arith.constant {COLUMNS} : index
      %sixtyfour = arith.constant 64 : index
      %readers = arith.constant 8 : index
      %warpsize = arith.constant 32 : index
      %group = arith.constant 128 : index
      %count = arith.constant 128 : i32
      %bytes = arith.constant {LEFT + RIGHT} : index
      %right_at = arith.constant {STAGES * LEFT} : index
      %sums_at = arith.constant {STAGES * (LEFT + RIGHT)} : index
      %ticks = arith.constant 10000000 : index
      %even = arith.constant false
      %odd = arith.constant true
{numbers}
      %thread = gpu.thread_id x
      %row_block = gpu.block_id y
      %column_block = gpu.block_id x
      %row = arith.muli %row_block, %rows : index
      %column = arith.muli %column_block, %columns : index
      %raw = gpu.dynamic_shared_memory : {bytes_}
      %left = memref.view %raw[%zero][] : {bytes_} to {ring}
      %right = memref.view %raw[%right_at][] : {bytes_} to {ring}
      %sums = memref.view %raw[%sums_at][] : {bytes_} to memref<{ROWS}x{COLUMNS}xf32, {_W}>
      %full = nvgpu.mbarrier.create -> {group}
      %empty = nvgpu.mbarrier.create -> {group}
      %first = arith.cmpi eq, %thread, %zero : index
      nvgpu.tma.prefetch.descriptor %ta, predicate = %first : {map_in}
      scf.if %first {{
{inits}
        nvvm.fence.mbarrier.init
      }}
      gpu.barrier
      %warpgroup = arith.divui %thread, %group : index
      %produces = arith.cmpi eq, %warpgroup, %zero : index
      scf.if %produces {{
        nvvm.setmaxregister decrease 40
        scf.if %first {{
          scf.for %step = %zero to %steps step %one iter_args(%stage = %zero, %parity = %odd) -> (index, i1) {{
            nvgpu.mbarrier.try_wait.parity %empty[%stage], %parity, %ticks : {group}
            nvgpu.mbarrier.arrive.expect_tx %full[%stage], %bytes : {group}
            %deep = arith.muli %step, %depth : index
            %la = memref.subview %left[%stage, 0, 0] [1, {ROWS}, {DEPTH}] [1, 1, 1] : {ring} to {stage}
            %lb = memref.subview %right[%stage, 0, 0] [1, {COLUMNS}, {DEPTH}] [1, 1, 1] : {ring} to {stage}
            nvgpu.tma.async.load %ta[%deep, %row], %full[%stage] to %la : {map_in}, {group} -> {stage}
            nvgpu.tma.async.load %tb[%deep, %column], %full[%stage] to %lb : {map_in}, {group} -> {stage}{turn}
            scf.yield %next, %flipped : index, i1
          }}
        }}
      }} else {{
        nvvm.setmaxregister increase 232
        %consumer = arith.subi %warpgroup, %one : index
        %own = arith.muli %consumer, %sixtyfour : index
        %lane = arith.remui %thread, %warpsize : index
        %elected = arith.cmpi eq, %lane, %zero : index
        %none = nvgpu.warpgroup.mma.init.accumulator -> {acc}
        %found:3 = scf.for %step = %zero to %steps step %one iter_args(%acc = %none, %stage = %zero, %parity = %even) -> ({acc}, index, i1) {{
          nvgpu.mbarrier.try_wait.parity %full[%stage], %parity, %ticks : {group}
          %a = memref.subview %left[%stage, %own, 0] [1, 64, {DEPTH}] [1, 1, 1] : {ring} to {half}
          %b = memref.subview %right[%stage, 0, 0] [1, {COLUMNS}, {DEPTH}] [1, 1, 1] : {ring} to {stage}
          %da = nvgpu.warpgroup.generate.descriptor %a, %ta : {half}, {map_in} -> {left}
          %db = nvgpu.warpgroup.generate.descriptor %b, %tb : {stage}, {map_in} -> {right}
          %sum = nvgpu.warpgroup.mma %da, %db, %acc {{waitGroup = 0 : i64}} : {left}, {right}, {acc} -> {acc}
          scf.if %elected {{
            %token = nvgpu.mbarrier.arrive %empty[%stage] : {group} -> !nvgpu.mbarrier.token
          }}{turn}
          scf.yield %sum, %next, %flipped : {acc}, index, i1
        }}
        %mine = memref.subview %sums[%own, 0] [64, {COLUMNS}] [1, 1] : memref<{ROWS}x{COLUMNS}xf32, {_W}> to {out}
        nvgpu.warpgroup.mma.store %found#0, %mine : {acc} to {out}
        nvvm.fence.proxy {{kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}}
        %number = arith.index_cast %warpgroup : index to i32
        nvvm.barrier id = %number number_of_threads = %count
        %place = arith.remui %thread, %group : index
        %stores = arith.cmpi eq, %place, %zero : index
        scf.if %stores {{
          %own_row = arith.addi %row, %own : index
          nvgpu.tma.async.store %mine to %tc[%column, %own_row] : {out} -> {map_out}
          nvvm.cp.async.bulk.commit.group
          nvvm.cp.async.bulk.wait_group 0 {{read}}
        }}
      }}
      gpu.return
    }}
  }}
  func.func @f(%a: memref<{m}x{k}x{element}>, %b: memref<{n}x{k}x{element}>, %c: memref<{m}x{n}xf32>)
      attributes {{gradir.inputs = 2 : i64, gradir.results = 1 : i64}} {{
    %one = arith.constant 1 : index
    %threads = arith.constant {THREADS} : index
    %across = arith.constant {-(-n // COLUMNS)} : index
    %down = arith.constant {-(-m // ROWS)} : index
    %bytes = arith.constant {SHARED} : i32
    %rows = arith.constant {ROWS} : index
    %depth = arith.constant {DEPTH} : index
    %half = arith.constant 64 : index
    %ua = memref.cast %a : memref<{m}x{k}x{element}> to memref<*x{element}>
    %ub = memref.cast %b : memref<{n}x{k}x{element}> to memref<*x{element}>
    %uc = memref.cast %c : memref<{m}x{n}xf32> to memref<*xf32>
    %ta = nvgpu.tma.create.descriptor %ua box[%rows, %depth] : memref<*x{element}> -> {map_in}
    %tb = nvgpu.tma.create.descriptor %ub box[%rows, %depth] : memref<*x{element}> -> {map_in}
    %tc = nvgpu.tma.create.descriptor %uc box[%half, %rows] : memref<*xf32> -> {map_out}
    gpu.launch_func @kernels::@gemm blocks in (%across, %down, %one) threads in (%threads, %one, %one) dynamic_shared_memory_size %bytes
      args(%ta : {map_in}, %tb : {map_in}, %tc : {map_out})
    func.return
  }}
}}
"""
