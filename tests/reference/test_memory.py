"""Level 3: the checked memory. Every mistake that a buffer can see is refused at the op that makes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradir.reference import run
from tests.reference.programs import evaluate, parse, refused

X = np.arange(12, dtype=np.float32).reshape(3, 4)
M = "memref<3x4xf32>"
INDICES = "".join(f"%c{i} = arith.constant {i} : index\n" for i in (0, 1, 2, 4, 8, 16, 60))


def program(arguments: str, body: str) -> str:
    return f"func.func @f({arguments}) {{\n{INDICES}{body}\nreturn\n}}"


def outputs(arguments: str, body: str, *inputs: Any, **options: Any) -> list[Any]:
    return run(parse(program(arguments, body)), "f", inputs, **options)


def fails(code: str, arguments: str, body: str, *inputs: Any) -> Any:
    return refused(code, program(arguments, body), inputs)


def test_load_store_copy() -> None:
    body = f"""%v = memref.load %x[%c1, %c2] : {M}
    memref.copy %x, %o : {M} to {M}
    memref.store %v, %o[%c0, %c0] : {M}"""
    (found,) = outputs(f"%x: {M}, %o: {M}", body, X, None)
    expected = X.copy()
    expected[0, 0] = 6
    np.testing.assert_array_equal(found, expected)


def test_out_of_bounds() -> None:
    error = fails("OP102", f"%x: {M}", f"%v = memref.load %x[%c1, %c4] : {M}", X)
    assert error.op == "memref.load" and error.expected == "0 <= index < 4" and error.found == "4"
    fails("OP102", f"%x: {M}, %v: f32", f"memref.store %v, %x[%c4, %c0] : {M}", X, np.float32(1))


def test_uninitialised_buffer() -> None:
    error = fails("OP101", "", f"%a = memref.alloc() : {M}\n%v = memref.load %a[%c0, %c0] : {M}")
    assert "%a of memref.alloc" in error.message
    fails("OP101", f"%o: {M}", "", None)


def test_use_after_free() -> None:
    alloc = f"%a = memref.alloc() : {M}\nmemref.dealloc %a : {M}\n"
    fails("OP106", "", alloc + f"%v = memref.load %a[%c0, %c0] : {M}")
    fails("OP106", "%v: f32", alloc + f"memref.store %v, %a[%c0, %c0] : {M}", np.float32(0))
    assert "twice" in fails("OP106", "", alloc + f"memref.dealloc %a : {M}").message


def test_each_alloc_is_fresh() -> None:
    body = f"""scf.for %i = %c0 to %c2 step %c1 {{
      %a = memref.alloc() : {M}
      %p = arith.cmpi eq, %i, %c1 : index
      scf.if %p {{
        %v = memref.load %a[%c0, %c0] : {M}
      }}
      memref.store %s, %a[%c0, %c0] : {M}
      memref.dealloc %a : {M}
    }}"""
    fails("OP101", "%s: f32", body, np.float32(1))


ENTRY = """
func.func @f(%x: memref<2xf32>, %o: memref<2xf32>, %arena: memref<64xi8>)
    attributes {{gradir.inputs = 1 : i64, gradir.results = 1 : i64, gradir.arena = 64 : i64}} {{
  {indices}{body}
  return
}}"""


def entry(body: str) -> str:
    return ENTRY.format(indices=INDICES, body=body)


def test_entry_allocates_outputs_and_arena() -> None:
    body = """%h = memref.view %arena[%c8][] : memref<64xi8> to memref<2xf32>
    memref.copy %x, %h : memref<2xf32> to memref<2xf32>
    memref.copy %h, %o : memref<2xf32> to memref<2xf32>"""
    np.testing.assert_array_equal(evaluate(entry(body), [np.array([3, 4], np.float32)])[0], [3, 4])


def test_write_to_an_input() -> None:
    error = refused("OP104", entry("memref.copy %o, %x : memref<2xf32> to memref<2xf32>".replace("%o, %x", "%x, %x")), [X[0, :2]])
    assert "input 0" in error.message


def test_write_to_a_constant() -> None:
    text = 'memref.global "private" constant @w : memref<2xf32> = dense<1.0>\n' + program(
        "%v: f32", "%g = memref.get_global @w : memref<2xf32>\nmemref.store %v, %g[%c0] : memref<2xf32>"
    )
    assert "@w" in refused("OP104", text, [np.float32(1)]).message


def test_globals() -> None:
    text = 'memref.global "private" constant @w : memref<2xf32> = dense<[1.5, 2.5]>\nmemref.global "private" @u : memref<2xf32> = uninitialized\n'
    body = "%g = memref.get_global @w : memref<2xf32>\nmemref.copy %g, %o : memref<2xf32> to memref<2xf32>"
    np.testing.assert_array_equal(evaluate(text + program("%o: memref<2xf32>", body), [None])[0], [1.5, 2.5])
    refused("OP101", text + program("%o: memref<2xf32>", body.replace("@w", "@u")), [None])
    refused("OP100", text + program("%o: memref<2xf32>", body.replace("@w", "@v")), [None])


def test_stale_read_of_the_arena() -> None:
    body = """%h = memref.view %arena[%c8][] : memref<64xi8> to memref<2xf32>
    %k = memref.view %arena[%c4][] : memref<64xi8> to memref<2xf32>
    memref.copy %x, %h : memref<2xf32> to memref<2xf32>
    memref.copy %x, %k : memref<2xf32> to memref<2xf32>
    memref.copy %h, %o : memref<2xf32> to memref<2xf32>"""
    error = refused("OP105", entry(body), [X[0, :2]])
    assert error.op == "memref.copy" and "byte 8" in error.message


def test_a_place_may_be_reused_by_the_next_value() -> None:
    body = """%h = memref.view %arena[%c8][] : memref<64xi8> to memref<2xf32>
    memref.copy %x, %h : memref<2xf32> to memref<2xf32>
    %v = memref.load %h[%c1] : memref<2xf32>
    %k = memref.view %arena[%c8][] : memref<64xi8> to memref<2xf32>
    memref.store %v, %k[%c0] : memref<2xf32>
    memref.store %v, %k[%c1] : memref<2xf32>
    memref.copy %k, %o : memref<2xf32> to memref<2xf32>"""
    np.testing.assert_array_equal(evaluate(entry(body), [X[0, :2]])[0], [1, 1])


def test_one_view_stays_one_value_around_a_loop() -> None:
    body = """scf.for %i = %c0 to %c2 step %c1 {
      %h = memref.view %arena[%c8][] : memref<64xi8> to memref<2xf32>
      %p = arith.cmpi eq, %i, %c0 : index
      scf.if %p {
        memref.copy %x, %h : memref<2xf32> to memref<2xf32>
      } else {
        memref.copy %h, %o : memref<2xf32> to memref<2xf32>
      }
    }"""
    np.testing.assert_array_equal(evaluate(entry(body), [X[0, :2]])[0], X[0, :2])


def test_view_must_fit() -> None:
    error = refused("OP102", entry("%h = memref.view %arena[%c60][] : memref<64xi8> to memref<2xf32>"), [X[0, :2]])
    assert error.found == "bytes 60 to 68"


def test_subviews() -> None:
    body = f"""%s = memref.subview %x[1, 1] [2, 2] [1, 2] : {M} to memref<2x2xf32, strided<[4, 2], offset: 5>>
    %r = memref.subview %s[%c1, 0] [1, 2] [1, 1] : memref<2x2xf32, strided<[4, 2], offset: 5>> to memref<2xf32, strided<[2], offset: ?>>
    %d = memref.cast %r : memref<2xf32, strided<[2], offset: ?>> to memref<?xf32, strided<[?], offset: ?>>
    memref.copy %d, %o : memref<?xf32, strided<[?], offset: ?>> to memref<2xf32>"""
    np.testing.assert_array_equal(outputs(f"%x: {M}, %o: memref<2xf32>", body, X, None)[0], [9, 11])


def test_subview_out_of_bounds_and_wrong_cast() -> None:
    fails("OP102", f"%x: {M}", f"%s = memref.subview %x[%c2, 0] [2, 4] [1, 1] : {M} to memref<2x4xf32, strided<[4, 1], offset: ?>>", X)
    wrong = f"""%s = memref.subview %x[0, 0] [3, 2] [1, 2] : {M} to memref<3x2xf32, strided<[4, 2]>>
    %d = memref.cast %s : memref<3x2xf32, strided<[4, 2]>> to memref<3x2xf32, strided<[?, ?]>>
    %e = memref.cast %d : memref<3x2xf32, strided<[?, ?]>> to memref<3x2xf32, strided<[4, 1]>>"""
    assert "another stride" in fails("OP111", f"%x: {M}", wrong, X).message
    body = "%d = memref.cast %x : memref<?xf32> to memref<3xf32>"
    assert "another size" in fails("OP111", "%x: memref<?xf32>", body, np.ones(4, np.float32)).message


def test_reshaping_views() -> None:
    body = f"""%c = memref.collapse_shape %x [[0, 1]] : {M} into memref<12xf32>
    %e = memref.expand_shape %c [[0, 1]] output_shape [2, 6] : memref<12xf32> into memref<2x6xf32>
    %r = memref.reinterpret_cast %e to offset: [6], sizes: [2, 3], strides: [3, 1] : memref<2x6xf32> to memref<2x3xf32, strided<[3, 1], offset: 6>>
    memref.copy %r, %o : memref<2x3xf32, strided<[3, 1], offset: 6>> to memref<2x3xf32>
    %n = memref.dim %e, %c1 : memref<2x6xf32>
    memref.store %n, %p[] : memref<index>"""
    first, second = outputs(f"%x: {M}, %o: memref<2x3xf32>, %p: memref<index>", body, X, None, None)
    np.testing.assert_array_equal(first, X.reshape(-1)[6:].reshape(2, 3))
    assert second == 6
    fails("OP102", f"%x: {M}", f"%n = memref.dim %x, %c2 : {M}", X)
    wide = f"%r = memref.reinterpret_cast %x to offset: [8], sizes: [8], strides: [1] : {M} to memref<8xf32, strided<[1], offset: 8>>"
    fails("OP102", f"%x: {M}", wide, X)
    strided = f"""%s = memref.subview %x[0, 0] [3, 2] [1, 1] : {M} to memref<3x2xf32, strided<[4, 1]>>
    %c = memref.collapse_shape %s [[0, 1]] : memref<3x2xf32, strided<[4, 1]>> into memref<6xf32>"""
    assert "not contiguous" in fails("OP111", f"%x: {M}", strided, X).message


def test_overlapping_copy() -> None:
    body = """%a = memref.subview %x[0] [3] [1] : memref<4xf32> to memref<3xf32, strided<[1]>>
    %b = memref.subview %x[1] [3] [1] : memref<4xf32> to memref<3xf32, strided<[1], offset: 1>>
    {op} : memref<3xf32, strided<[1]>> {to} memref<3xf32, strided<[1], offset: 1>>{end}"""
    fails("OP109", "%x: memref<4xf32>", body.format(op="memref.copy %a, %b", to="to", end=""), X[0])
    copy = """%a = memref.subview %x[0] [3] [1] : memref<4xf32> to memref<3xf32, strided<[1]>>
    %b = memref.subview %x[1] [3] [1] : memref<4xf32> to memref<3xf32, strided<[1], offset: 1>>
    linalg.copy ins(%a : memref<3xf32, strided<[1]>>) outs(%b : memref<3xf32, strided<[1], offset: 1>>)"""
    fails("OP109", "%x: memref<4xf32>", copy, X[0])
    fails("OP111", "%x: memref<?xf32>, %y: memref<?xf32>", "memref.copy %x, %y : memref<?xf32> to memref<?xf32>", X[0], X[:, 0])


KERNEL = """
func.func private @k(%a: memref<2xf32> {{gradir.access = "read"}}, %b: memref<2xf32> {{gradir.access = "write"{alias}}}) {{
  {body}
  return
}}
func.func @f(%x: memref<2xf32>, %y: memref<2xf32>) {{
  call @k(%x, {second}) : (memref<2xf32>, memref<2xf32>) -> ()
  return
}}"""
COPY = "memref.copy %a, %b : memref<2xf32> to memref<2xf32>"


def test_kernel_attributes() -> None:
    x = np.array([1, 2], np.float32)
    text = KERNEL.format(alias="", body=COPY, second="%y")
    np.testing.assert_array_equal(run(parse(text), "f", [x, None])[0], x)
    refused("OP108", KERNEL.format(alias="", body=COPY, second="%x"), [x, x])
    run(parse(KERNEL.format(alias=", gradir.alias = [0]", body=COPY, second="%x")), "f", [x, x])
    wrong = KERNEL.format(alias="", body=COPY.replace("%a, %b", "%b, %a"), second="%y")
    assert "declared `read`" in refused("OP104", wrong.replace("%b, %a", "%a, %a"), [x, x]).message


def test_values_between_to_tensor_and_materialize() -> None:
    body = f"""%t = bufferization.to_tensor %x restrict : {M} to tensor<3x4xf32>
    %s = nd.neg %t : tensor<3x4xf32>
    bufferization.materialize_in_destination %s in restrict writable %o : (tensor<3x4xf32>, {M}) -> ()"""
    np.testing.assert_array_equal(outputs(f"%x: {M}, %o: {M}", body, X, None)[0], -X)


def test_dynamic_outputs_need_sizes() -> None:
    body = "memref.copy %x, %o : memref<?xf32> to memref<?xf32>"
    arguments = "%x: memref<?xf32>, %o: memref<?xf32>"
    np.testing.assert_array_equal(outputs(arguments, body, X[0], None, result_shapes=[[4]])[0], X[0])
    fails("OP114", arguments, body, X[0], None)
    fails("OP114", "%s: f32", "", None)


def test_negative_size() -> None:
    fails("OP102", "%n: index", "%a = memref.alloc(%n) : memref<?xf32>", np.int64(-1))


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16", "i1", "i8", "i64", "index"])
def test_every_element_type_goes_through_bytes(dtype: str) -> None:
    m = f"memref<2x{dtype}>"
    literal = {"i1": "[true, false]", "i8": "[-1, 3]", "i64": "[-1, 3]", "index": "[5, 3]"}.get(dtype, "[-1.5, 3.0]")
    text = f'memref.global "private" constant @w : {m} = dense<{literal}>\n' + program(
        f"%o: {m}",
        f"%g = memref.get_global @w : {m}\n%v = memref.load %g[%c0] : {m}\nmemref.copy %g, %o : {m} to {m}\nmemref.store %v, %o[%c1] : {m}",
    )
    (found,) = evaluate(text, [None])
    assert found[0] == found[1] != 3
