"""A product of warpgroups written by hand at level 4: a ring of tensor copies, one producer warpgroup, others multiply, results likewise."""

from __future__ import annotations

ROWS, COLUMNS, DEPTH, STAGES = 128, 128, 64, 3
LEFT, RIGHT, SUMS = ROWS * DEPTH * 2, COLUMNS * DEPTH * 2, ROWS * COLUMNS * 4
SHARED = STAGES * (LEFT + RIGHT) + SUMS
_W = "#gpu.address_space<workgroup>"


def _map(shape: str, swizzle: str) -> str:
    return (
        f"!nvgpu.tensormap.descriptor<tensor = memref<{shape}, {_W}>, swizzle = {swizzle}, l2promo = none, oob = zero, interleave = none>"
    )


def _view(source: str, result: str, ring: str, kind: str, places: str, sizes: str) -> str:
    """A matrix inside a ring; `kind` is its type."""
    ones = ", ".join(["1"] * (sizes.count(",") + 1))
    return f"%{result} = memref.subview %{source}[{places}] [{sizes}] [{ones}] : {ring} to {kind}"


def gemm(m: int, n: int, k: int, element: str = "bf16", *, turned_a: bool = False, turned_b: bool = False, consumers: int = 2) -> str:
    """`c[m, n] = a[m, k] @ b[n, k]^T` in f32, blocks of 128 x 128; strides have to be multiples of 16 bytes, sizes need not be of blocks.

    `turned_a`: a is `[k, m]`; `turned_b`: b is `[k, n]`. A tile of these comes as two boxes of 64 rows or columns.
    `consumers`: warpgroups that multiply, 1 or 2.
    """
    threads, height = 128 * (consumers + 1), ROWS // consumers
    group = f"!nvgpu.mbarrier.group<memorySpace = {_W}, num_barriers = {STAGES}>"
    tile = f"{ROWS}x{DEPTH}x{element}"
    map_in, map_out = _map(tile, "swizzle_128b"), _map(f"{height}x{COLUMNS}xf32", "none")
    half = f"memref<64x{DEPTH}x{element}, strided<[{DEPTH}, 1], offset: ?>, {_W}>"
    pair = f"memref<{STAGES}x2x{DEPTH}x64x{element}, {_W}>"
    wide = f"memref<{STAGES}x{DEPTH}x{COLUMNS}x{element}, {_W}>"
    stage = f"memref<{ROWS}x{DEPTH}x{element}, strided<[{DEPTH}, 1], offset: ?>, {_W}>"
    ring = f"memref<{STAGES}x{tile}, {_W}>"
    bytes_ = f"memref<?xi8, {_W}>"
    acc = f"!nvgpu.warpgroup.accumulator<fragmented = vector<{height}x{COLUMNS}xf32>>"
    left = f"!nvgpu.warpgroup.descriptor<tensor = memref<{height}x{DEPTH}x{element}, {_W}>>"
    right = f"!nvgpu.warpgroup.descriptor<tensor = memref<{DEPTH}x{COLUMNS}x{element}, {_W}>>"
    out = f"memref<{height}x{COLUMNS}xf32, strided<[{COLUMNS}, 1], offset: ?>, {_W}>"
    across = f"memref<{DEPTH}x{COLUMNS}x{element}, strided<[{COLUMNS}, 1], offset: ?>, {_W}>"
    map_turned = _map(f"{DEPTH}x64x{element}", "swizzle_128b")
    map_a, map_b = (map_turned if turned else map_in for turned in (turned_a, turned_b))
    shape_a, shape_b = (f"{k}x{m}" if turned_a else f"{m}x{k}"), (f"{k}x{n}" if turned_b else f"{n}x{k}")
    box_a, box_b = ("%depth, %half" if turned else "%rows, %depth" for turned in (turned_a, turned_b))
    words = "".join(word for word, turned in (("transposeA, ", turned_a), ("transposeB, ", turned_b)) if turned)
    ring_a, ring_b = (pair if turned else ring for turned in (turned_a, turned_b))
    lines: list[str] = []
    for name, side, start, map_, turned in (("a", "left", "row", map_a, turned_a), ("b", "right", "column", map_b, turned_b)):
        if turned:
            for box, at in ((0, start), (1, f"{start}_half")):
                lines.append(_view(side, f"l{name}{box}", pair, half, f"%stage, {box}, 0, 0", f"1, 1, {DEPTH}, 64"))
                lines.append(f"nvgpu.tma.async.load %t{name}[%{at}, %deep], %full[%stage] to %l{name}{box} : {map_}, {group} -> {half}")
        else:
            lines.append(_view(side, f"l{name}", ring, stage, "%stage, 0, 0", f"1, {ROWS}, {DEPTH}"))
            lines.append(f"nvgpu.tma.async.load %t{name}[%deep, %{start}], %full[%stage] to %l{name} : {map_}, {group} -> {stage}")
    loads = "\n            ".join(lines)
    if turned_a and consumers == 1:
        type_a, read_a = across, _view("left_wide", "a", wide, across, "%stage, 0, 0", f"1, {DEPTH}, {ROWS}")
    elif turned_a:
        type_a, read_a = half, _view("left", "a", pair, half, "%stage, %consumer, 0, 0", f"1, 1, {DEPTH}, 64")
    else:
        type_a = f"memref<{height}x{DEPTH}x{element}, strided<[{DEPTH}, 1], offset: ?>, {_W}>"
        read_a = _view("left", "a", ring, type_a, "%stage, %own, 0", f"1, {height}, {DEPTH}")
    read_b = (
        _view("right_wide", "b", wide, across, "%stage, 0, 0", f"1, {DEPTH}, {COLUMNS}")
        if turned_b
        else _view("right", "b", ring, stage, "%stage, 0, 0", f"1, {COLUMNS}, {DEPTH}")
    )
    read_type = across if turned_b else stage
    # two warpgroups have registers enough
    give, take = (f"        nvvm.setmaxregister {word}\n" if consumers == 2 else "" for word in ("decrease 40", "increase 232"))
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
    gpu.func @gemm(%ta: {map_a} {{gradir.access = "read"}}, %tb: {map_b} {{gradir.access = "read"}}, %tc: {map_out} {{gradir.access = "write"}})
        kernel attributes {{known_block_size = array<i32: {threads}, 1, 1>}} {{
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %stages = arith.constant {STAGES} : index
      %steps = arith.constant {-(-k // DEPTH)} : index
      %depth = arith.constant {DEPTH} : index
      %rows = arith.constant {ROWS} : index
      %columns = arith.constant {COLUMNS} : index
      %sixtyfour = arith.constant 64 : index
      %readers = arith.constant {4 * consumers} : index
      %height = arith.constant {height} : index
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
      %row_half = arith.addi %row, %sixtyfour : index
      %column_half = arith.addi %column, %sixtyfour : index
      %raw = gpu.dynamic_shared_memory : {bytes_}
      %left = memref.view %raw[%zero][] : {bytes_} to {ring_a}
      %left_wide = memref.view %raw[%zero][] : {bytes_} to {wide}
      %right = memref.view %raw[%right_at][] : {bytes_} to {ring_b}
      %right_wide = memref.view %raw[%right_at][] : {bytes_} to {wide}
      %sums = memref.view %raw[%sums_at][] : {bytes_} to memref<{ROWS}x{COLUMNS}xf32, {_W}>
      %full = nvgpu.mbarrier.create -> {group}
      %empty = nvgpu.mbarrier.create -> {group}
      %first = arith.cmpi eq, %thread, %zero : index
      nvgpu.tma.prefetch.descriptor %ta, predicate = %first : {map_a}
      scf.if %first {{
{inits}
        nvvm.fence.mbarrier.init
      }}
      gpu.barrier
      %warpgroup = arith.divui %thread, %group : index
      %produces = arith.cmpi eq, %warpgroup, %zero : index
      scf.if %produces {{
{give}        scf.if %first {{
          scf.for %step = %zero to %steps step %one iter_args(%stage = %zero, %parity = %odd) -> (index, i1) {{
            nvgpu.mbarrier.try_wait.parity %empty[%stage], %parity, %ticks : {group}
            nvgpu.mbarrier.arrive.expect_tx %full[%stage], %bytes : {group}
            %deep = arith.muli %step, %depth : index
            {loads}{turn}
            scf.yield %next, %flipped : index, i1
          }}
        }}
      }} else {{
{take}        %consumer = arith.subi %warpgroup, %one : index
        %own = arith.muli %consumer, %height : index
        %lane = arith.remui %thread, %warpsize : index
        %elected = arith.cmpi eq, %lane, %zero : index
        %none = nvgpu.warpgroup.mma.init.accumulator -> {acc}
        %found:3 = scf.for %step = %zero to %steps step %one iter_args(%acc = %none, %stage = %zero, %parity = %even) -> ({acc}, index, i1) {{
          nvgpu.mbarrier.try_wait.parity %full[%stage], %parity, %ticks : {group}
          {read_a}
          {read_b}
          %da = nvgpu.warpgroup.generate.descriptor %a, %ta : {type_a}, {map_a} -> {left}
          %db = nvgpu.warpgroup.generate.descriptor %b, %tb : {read_type}, {map_b} -> {right}
          %sum = nvgpu.warpgroup.mma %da, %db, %acc {{{words}waitGroup = 0 : i64}} : {left}, {right}, {acc} -> {acc}
          scf.if %elected {{
            %token = nvgpu.mbarrier.arrive %empty[%stage] : {group} -> !nvgpu.mbarrier.token
          }}{turn}
          scf.yield %sum, %next, %flipped : {acc}, index, i1
        }}
        %mine = memref.subview %sums[%own, 0] [{height}, {COLUMNS}] [1, 1] : memref<{ROWS}x{COLUMNS}xf32, {_W}> to {out}
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
  func.func @f(%a: memref<{shape_a}x{element}>, %b: memref<{shape_b}x{element}>, %c: memref<{m}x{n}xf32>)
      attributes {{gradir.inputs = 2 : i64, gradir.results = 1 : i64}} {{
    %one = arith.constant 1 : index
    %threads = arith.constant {threads} : index
    %across = arith.constant {-(-n // COLUMNS)} : index
    %down = arith.constant {-(-m // ROWS)} : index
    %bytes = arith.constant {SHARED} : i32
    %rows = arith.constant {ROWS} : index
    %depth = arith.constant {DEPTH} : index
    %half = arith.constant 64 : index
    %height = arith.constant {height} : index
    %ua = memref.cast %a : memref<{shape_a}x{element}> to memref<*x{element}>
    %ub = memref.cast %b : memref<{shape_b}x{element}> to memref<*x{element}>
    %uc = memref.cast %c : memref<{m}x{n}xf32> to memref<*xf32>
    %ta = nvgpu.tma.create.descriptor %ua box[{box_a}] : memref<*x{element}> -> {map_a}
    %tb = nvgpu.tma.create.descriptor %ub box[{box_b}] : memref<*x{element}> -> {map_b}
    %tc = nvgpu.tma.create.descriptor %uc box[%height, %rows] : memref<*xf32> -> {map_out}
    gpu.launch_func @kernels::@gemm blocks in (%across, %down, %one) threads in (%threads, %one, %one) dynamic_shared_memory_size %bytes
      args(%ta : {map_a}, %tb : {map_b}, %tc : {map_out})
    func.return
  }}
}}
"""
