"""Eleven ways in which bufferization, fusion and AD once went wrong, each as small IR: what is wrong is refused or differs.

Each case is a correct program and the same program after the miscompile. The correct one evaluates; the wrong one is an error at the op that
makes it (ownership, anti-dependences, sizes), or a difference found by `check_semantics`.
"""

from __future__ import annotations

import numpy as np
import pytest

from gradir.reference import check_semantics, run
from tests.reference.programs import evaluate, parse, refused

F = "memref<2xf32>"
SCALE = f"""
func.func private @scale(%a: {F} {{gradir.access = "read", gradir.alias = [1]}}, %b: {F} {{gradir.access = "write", gradir.alias = [0]}}) {{
  linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}} ins(%a : {F}) outs(%b : {F}) {{
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %x, %x : f32
    linalg.yield %s : f32
  }}
  return
}}"""
ENTRY = "attributes {gradir.inputs = 1 : i64, gradir.results = 1 : i64, gradir.arena = 256 : i64}"
CONSTANTS = "".join(f"%c{i} = arith.constant {i} : index\n" for i in (0, 1, 2, 3, 4, 64, 128))
VIEWS = "".join(f"%v{k} = memref.view %arena[%c{64 * k}][] : memref<256xi8> to {F}\n" for k in range(3))
X = np.array([1, 3], np.float32)


def entry(body: str, result: str = F) -> str:
    return f"{SCALE}\nfunc.func @f(%x: {F}, %out: {result}, %arena: memref<256xi8>) {ENTRY} {{\n{CONSTANTS}{VIEWS}{body}\nreturn\n}}"


def call(source: str, target: str) -> str:
    return f"call @scale({source}, {target}) : ({F}, {F}) -> ()\n"


def copy(source: str, target: str) -> str:
    return f"memref.copy {source}, {target} : {F} to {F}\n"


# 1. an in-place branch of `scf.if` wrote through a carried (rotated) pointer, whose first value is the entry's argument

ROTATE = """%r:3 = scf.for %t = %c0 to %c3 step %c1 iter_args(%cur = {first}, %nxt = %v1, %oth = %v2) -> (memref<2xf32>, memref<2xf32>, memref<2xf32>) {{
  %odd = arith.cmpi ne, %t, %c1 : index
  scf.if %odd {{
    {branch}
  }} else {{
    memref.copy %cur, %nxt : memref<2xf32> to memref<2xf32>
  }}
  scf.yield %nxt, %oth, %nxt : memref<2xf32>, memref<2xf32>, memref<2xf32>
}}
memref.copy %r#0, %out : memref<2xf32> to memref<2xf32>"""


def test_1_in_place_branch_writes_through_a_rotated_pointer() -> None:
    good = entry(ROTATE.format(first="%x", branch=call("%cur", "%nxt")))
    np.testing.assert_array_equal(evaluate(good, [X])[0], 4 * X)
    bad = entry(ROTATE.format(first="%x", branch=call("%cur", "%cur") + copy("%cur", "%nxt")))
    error = refused("OP104", bad, [X])
    assert error.op == "linalg.generic" and "input 0" in error.message


def test_1_the_same_over_a_saved_residual() -> None:
    """The pointer is a slice of the stack that the reverse pass reads."""
    save = "memref.subview %stack[{0}, 0] [1, 2] [1, 1] : memref<2x2xf32> to memref<2xf32, strided<[1], offset: ?>>"
    body = f"""%stack = memref.alloc() : memref<2x2xf32>
    %s0 = {save.format("%c0")}
    %p0 = memref.cast %s0 : memref<2xf32, strided<[1], offset: ?>> to memref<2xf32, strided<[?], offset: ?>>
    memref.copy %x, %p0 : {F} to memref<2xf32, strided<[?], offset: ?>>
    {{step}}
    memref.copy %p0, %out : memref<2xf32, strided<[?], offset: ?>> to {F}"""
    update = """linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%p0 : memref<2xf32, strided<[?], offset: ?>>) outs(TARGET) {
    ^bb0(%a: f32, %o: f32):
      %s = arith.addf %a, %a : f32
      linalg.yield %s : f32
    }"""
    good = parse(entry(body.format(step=update.replace("TARGET", f"%v0 : {F}"))))
    bad = parse(entry(body.format(step=update.replace("TARGET", "%p0 : memref<2xf32, strided<[?], offset: ?>>"))))
    np.testing.assert_array_equal(run(good, "f", [X])[0], X)
    error = check_semantics(good, bad, pass_name="bufferize")
    assert error is not None and "pass bufferize" in error.message and error.code == "OP110"


# 2. the destination of an insert was forwarded to its producer although the slice is read in between

FORWARD = """func.func @f(%x: tensor<2xf32>, %s: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>) {
  %old = tensor.extract_slice %s[0, 0] [1, 2] [1, 1] : tensor<2x2xf32> to tensor<2xf32>
  %new = nd.add %x, %x : tensor<2xf32>
  %sum = nd.add %old, %new : tensor<2xf32>
  %t = tensor.insert_slice %new into %s[0, 0] [1, 2] [1, 1] : tensor<2xf32> into tensor<2x2xf32>
  return %t, %sum : tensor<2x2xf32>, tensor<2xf32>
}"""

FORWARDED = """func.func @f(%x: memref<2xf32>, %s: memref<2x2xf32>, %t: memref<2x2xf32>, %sum: memref<2xf32>)
    attributes {{gradir.inputs = 2 : i64, gradir.results = 2 : i64}} {{
  memref.copy %s, %t : memref<2x2xf32> to memref<2x2xf32>
  %slot = memref.subview %t[0, 0] [1, 2] [1, 1] : memref<2x2xf32> to memref<2xf32, strided<[1]>>
  {temporary}
  linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
    ins(%x : memref<2xf32>) outs(%new : {type}) {{
  ^bb0(%a: f32, %o: f32):
    %d = arith.addf %a, %a : f32
    linalg.yield %d : f32
  }}
  linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
    ins(%slot, %new : memref<2xf32, strided<[1]>>, {type}) outs(%sum : memref<2xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.addf %a, %b : f32
    linalg.yield %d : f32
  }}
  memref.copy %new, %slot : {type} to memref<2xf32, strided<[1]>>
  return
}}"""


def test_2_forwarded_destination_with_a_reader_in_between() -> None:
    before = parse(FORWARD)
    good = FORWARDED.format(temporary="%new = memref.alloc() : memref<2xf32>", type="memref<2xf32>")
    strided = "memref<2xf32, strided<[1]>>"
    bad = FORWARDED.format(temporary=f"%new = memref.cast %slot : {strided} to {strided}", type=strided)
    assert check_semantics(before, parse(good)) is None
    error = check_semantics(before, parse(bad), pass_name="bufferize")
    assert error is not None and "result 1 of @f differs" in error.message


def test_2_the_same_in_the_arena_is_a_stale_read() -> None:
    view = f"%n = memref.view %arena[%c0][] : memref<256xi8> to {F}\n"
    body = copy("%x", "%v0") + "{view}" + call("%x", "%n") + copy("%v0", "%out") + copy("%n", "%v1")
    good = entry(body.format(view=view.replace("%c0", "%c64")))
    np.testing.assert_array_equal(evaluate(good, [X])[0], X)
    assert "another view has overwritten" in refused("OP105", entry(body.format(view=view)), [X]).message


# 3. without reader-before-insert edges, a kernel that reads the old stack runs after the insert (or the whole stack is copied)


def test_3_reader_ordered_after_the_insert() -> None:
    read, write = call("%v0", "%v1"), call("%v1", "%v0")
    start, end = copy("%x", "%v0") + copy("%x", "%v1"), copy("%v1", "%out")
    error = check_semantics(parse(entry(start + read + write + end)), parse(entry(start + write + read + end)), pass_name="order-kernels")
    assert error is not None and "pass order-kernels" in error.message


# 4. an in-place decision was not rolled back: the carried value ended in another buffer and was not copied back

CARRIED = """%r = scf.for %t = %c0 to %c3 step %c1 iter_args(%acc = %v0) -> (memref<2xf32>) {{
  {step}
}}
memref.copy %v0, %out : memref<2xf32> to memref<2xf32>"""


def test_4_carried_value_ends_in_another_buffer() -> None:
    in_place = call("%acc", "%acc") + "scf.yield %acc : memref<2xf32>"
    copied_back = call("%acc", "%v1") + copy("%v1", "%acc") + "scf.yield %acc : memref<2xf32>"
    forgotten = call("%acc", "%v1") + "scf.yield %v1 : memref<2xf32>"
    good, same, bad = (parse(entry(copy("%x", "%v0") + CARRIED.format(step=step))) for step in (in_place, copied_back, forgotten))
    np.testing.assert_array_equal(run(good, "f", [X])[0], 8 * X)
    assert check_semantics(good, same) is None
    assert check_semantics(good, bad) is not None


# 5. the cotangent of a slice: added as a whole stack of zeros and one slice; the accumulator was overwritten instead of added to

ACCUMULATE = """func.func @f(%g: tensor<3x2xf32>, %z: tensor<3x2xf32>) -> tensor<3x2xf32> {{
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %3 = arith.constant 3 : index
  %r = scf.for %i = %0 to %3 step %1 iter_args(%acc = %z) -> (tensor<3x2xf32>) {{
    %gi = tensor.extract_slice %g[%i, 0] [1, 2] [1, 1] : tensor<3x2xf32> to tensor<2xf32>
    %old = tensor.extract_slice %acc[%1, 0] [1, 2] [1, 1] : tensor<3x2xf32> to tensor<2xf32>
    %sum = nd.add %old, %gi : tensor<2xf32>
    %new = tensor.insert_slice %{value} into %acc[%1, 0] [1, 2] [1, 1] : tensor<2xf32> into tensor<3x2xf32>
    scf.yield %new : tensor<3x2xf32>
  }}
  return %r : tensor<3x2xf32>
}}"""


def test_5_cotangent_of_a_slice_accumulates() -> None:
    good, bad = (parse(ACCUMULATE.format(value=value)) for value in ("sum", "gi"))
    g, z = np.arange(6, dtype=np.float32).reshape(3, 2), np.zeros((3, 2), np.float32)
    np.testing.assert_array_equal(run(good, "f", [g, z])[0][1], g.sum(0))
    assert check_semantics(good, bad) is not None


# 6. fusion merged a producer and a consumer although a path leads out of the group, through a slice, and back

PATH = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %a = nd.exp %x : tensor<4xf32>
  %head = tensor.extract_slice {source}[0] [2] [1] : tensor<4xf32> to tensor<2xf32>
  %n = nd.neg %head : tensor<2xf32>
  %b = tensor.insert_slice %n into %a[2] [2] [1] : tensor<2xf32> into tensor<4xf32>
  %r = nd.add %a, %b : tensor<4xf32>
  return %r : tensor<4xf32>
}}"""


def test_6_path_through_a_slice() -> None:
    good, bad = (parse(PATH.format(source=source)) for source in ("%a", "%x"))
    assert check_semantics(good, bad, pass_name="fuse") is not None


def test_6_use_before_definition() -> None:
    """What such a merge leaves behind when the order is not restored: xDSL's verifier accepts it."""
    module = parse(PATH.format(source="%a"))
    body = module.body.block.first_op.regions[0].block  # pyright: ignore[reportOptionalMemberAccess]
    first = body.first_op
    assert first is not None and body.last_op is not None
    first.detach()
    body.insert_op_before(first, body.last_op)
    with pytest.raises(Exception, match="does not dominate"):
        run(module, "f", [np.ones(4, np.float32)])


# 7. an empty tensor of a run-time size had nothing that tied it to where the size is bound


def test_7_size_bound_after_its_use() -> None:
    bind, use = 'nd.bind %m as "n"', '%n = nd.symbol "n"'
    text = "func.func @f(%m: index) -> index {{\n{}\n{}\nreturn %n : index\n}}"
    assert evaluate(text.format(bind, use), [np.int64(3)]) == [3]
    assert refused("OP111", text.format(use, bind), [np.int64(3)]).op == "nd.symbol"


def test_7_size_operand_decides() -> None:
    text = """func.func @f(%m: index, %k: index) -> tensor<?xf32> {
      %one = arith.constant 1.0 : f32
      %e = tensor.empty(%m) : tensor<?xf32>
      %s = linalg.fill ins(%one : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
      %x = tensor.splat %one[%k] : tensor<?xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%x : tensor<?xf32>) outs(%s : tensor<?xf32>) {
      ^bb0(%a: f32, %o: f32):
        linalg.yield %a : f32
      } -> tensor<?xf32>
      return %r : tensor<?xf32>
    }"""
    assert evaluate(text, [np.int64(3), np.int64(3)])[0].shape == (3,)
    refused("OP111", text, [np.int64(3), np.int64(2)])


# 8. residuals whose number an inner `while` decides do not fit the slot that an outer loop reserved for them

STACKED = f"""%stack = memref.alloc(%n) : memref<?x2xf32>
%end = scf.while (%i = %c0) : (index) -> index {{
  %more = arith.cmpi slt, %i, %trips : index
  scf.condition(%more) %i : index
}} do {{
^bb0(%i: index):
  %slot = memref.subview %stack[%i, 0] [1, 2] [1, 1] : memref<?x2xf32> to memref<2xf32, strided<[1], offset: ?>>
  memref.copy %x, %slot : {F} to memref<2xf32, strided<[1], offset: ?>>
  %j = arith.addi %i, %c1 : index
  scf.yield %j : index
}}
memref.dealloc %stack : memref<?x2xf32>"""


def test_8_residuals_of_a_data_dependent_loop() -> None:
    text = f"func.func @f(%x: {F}, %n: index, %trips: index) {{\n{CONSTANTS}{STACKED}\nreturn\n}}"
    evaluate(text, [X, np.int64(3), np.int64(3)])
    error = refused("OP102", text, [X, np.int64(3), np.int64(4)])
    assert error.op == "memref.subview"


# 9. workspace that a kernel allocated by itself, sized by the data; it comes from the arena, and must fit


def test_9_workspace_must_fit_the_arena() -> None:
    body = """%w = memref.view %arena[%c128][%n] : memref<256xi8> to memref<?xf32>
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%w : memref<?xf32>)"""
    text = f"func.func @f(%n: index, %arena: memref<256xi8>) attributes {{gradir.inputs = 1 : i64, gradir.results = 0 : i64}} {{\n{CONSTANTS}{body}\nreturn\n}}"
    evaluate(text, [np.int64(32)])
    assert refused("OP102", text, [np.int64(33)]).found == "bytes 128 to 260"


# 10. constants lifted to operands so that kernels deduplicate: two kernels that differ in a constant were merged


def test_10_deduplicated_kernels_keep_their_constants() -> None:
    kernel = """func.func private @{name}(%a: tensor<2xf32>) -> tensor<2xf32> {{
      %c = arith.constant dense<{value}> : tensor<2xf32>
      %r = arith.mulf %a, %c : tensor<2xf32>
      return %r : tensor<2xf32>
    }}"""
    main = """func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {{
      %a = call @k0(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %b = call @{second}(%a) : (tensor<2xf32>) -> tensor<2xf32>
      return %b : tensor<2xf32>
    }}"""
    kernels = kernel.format(name="k0", value="2.0") + kernel.format(name="k1", value="3.0")
    good, bad = (parse(kernels + main.format(second=name)) for name in ("k1", "k0"))
    error = check_semantics(good, bad, pass_name="outline-kernels")
    assert error is not None and "pass outline-kernels" in error.message


# 11. loops emitted as do-while without a guard for zero trips

GUARD = """func.func @f(%x: tensor<?xf32, ["n"]>) -> tensor<f32> {{
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %0 : tensor<?xf32, ["n"]>
  {loop}
  %r = tensor.from_elements %s : tensor<f32>
  return %r : tensor<f32>
}}"""
GUARDED = """%s = scf.for %i = %0 to %n step %1 iter_args(%a = %zero) -> (f32) {
    %v = tensor.extract %x[%i] : tensor<?xf32, ["n"]>
    %b = arith.addf %a, %v : f32
    scf.yield %b : f32
  }"""
DO_WHILE = """%end, %s = scf.while (%i = %0, %a = %zero) : (index, f32) -> (index, f32) {
    %v = tensor.extract %x[%i] : tensor<?xf32, ["n"]>
    %b = arith.addf %a, %v : f32
    %j = arith.addi %i, %1 : index
    %more = arith.cmpi slt, %j, %n : index
    scf.condition(%more) %j, %b : index, f32
  } do {
  ^bb0(%i: index, %a: f32):
    scf.yield %i, %a : index, f32
  }"""


def test_11_zero_trips_need_a_guard() -> None:
    good, bad = (parse(GUARD.format(loop=loop)) for loop in (GUARDED, DO_WHILE))
    np.testing.assert_array_equal(run(bad, "f", [X])[0], run(good, "f", [X])[0])
    error = check_semantics(good, bad, pass_name="lower-kernels")
    assert error is not None and error.code == "OP102" and "no meaning any more" in error.message
