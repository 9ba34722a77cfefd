"""Straight-line programs through bufferize: outputs, constants, slices, reshapes, run-time sizes, templates, variants, errors."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import UnknownLoc
from xdsl.dialects.func import FuncOp

from gradir.errors import GradirError
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module
from gradir.lowering.bufferize import Bufferize
from gradir.reference import run
from tests.lowering.bufferize_checks import HEAD, Checked, arrays, program
from tests.lowering.bufferize_programs import CELL, KERNELS, STACK, TEMPLATE, call, get, module, put

# -- outputs


def test_the_last_kernel_writes_the_output() -> None:
    checked = program(call("%t", "product", "%x", "%y") + call("%u", "product", "%t", "%x") + f"return %u : {CELL}")
    assert checked.copies == {}
    assert checked.facts["buffers"] == 1 and checked.facts["arena"] == 64
    assert "gradir.inputs = 5 : i64, gradir.results = 1 : i64" in checked.body
    assert "gradir.arena = 64 : i64" in checked.planned and "%arena: memref<64xi8>" in checked.planned


def test_a_kernel_writes_over_an_operand_that_dies_there() -> None:
    """`%t` lies in the output, where `scale` reads and writes one element after the other; nothing else reads `%t`."""
    checked = program(call("%t", "product", "%x", "%y") + call("%u", "scale", "%t") + f"return %u : {CELL}")
    assert checked.copies == {} and checked.facts["buffers"] == 0
    assert "func.call @scale(%t, %t)" in checked.body


def test_an_operand_that_is_read_later_is_not_written_over() -> None:
    body = call("%t", "product", "%x", "%y") + call("%u", "scale", "%t") + call("%v", "product", "%t", "%u")
    checked = program(body + f"return %v : {CELL}")
    assert checked.copies == {} and checked.facts["buffers"] == 2


def test_an_argument_is_not_written_over() -> None:
    checked = program(call("%t", "scale", "%x") + call("%u", "product", "%t", "%x") + f"return %u : {CELL}")
    assert checked.facts["buffers"] == 1 and "@scale(%x, %t)" in checked.body


def test_a_barrier_passes_memory_on() -> None:
    """The parts of a barrier are the values themselves, also for who may write over them."""
    same = f"%v = tensor.cast %t {{gradir.barrier = 0 : i64}} : {CELL} to {CELL}\n"
    checked = program(call("%t", "product", "%x", "%y") + same + call("%u", "scale", "%v") + f"return %u : {CELL}")
    assert checked.copies == {} and checked.facts["buffers"] == 0


def test_one_result_twice_an_argument_and_a_constant() -> None:
    constant = f"%k = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]> : {CELL}\n"
    body = call("%t", "scale", "%x") + constant + f"return %t, %t, %y, %k, %k : {', '.join([CELL] * 5)}"
    checked = program(body, "(" + ", ".join([CELL] * 5) + ")")
    assert len(checked.copies["f"]) == 4
    assert checked.text.count("memref.global") == 1


def test_a_result_that_other_kernels_read_lies_in_the_output_all_the_same() -> None:
    body = call("%t", "scale", "%x") + call("%u", "mean", "%t", "%y") + call("%v", "mean", "%u", "%t")
    checked = program(body + f"return %v, %t : {CELL}, {CELL}", f"({CELL}, {CELL})")
    assert checked.copies == {} and checked.facts["buffers"] == 0  # `%u` lies where `%v` will


def test_several_results_of_one_kernel() -> None:
    checked = program(call("%t", "both", "%x", "%y") + f"return %t_1, %t : {CELL}, {CELL}", f"({CELL}, {CELL})")
    assert checked.copies == {}


def test_a_result_nobody_reads_needs_memory_all_the_same() -> None:
    checked = program(call("%t", "both", "%x", "%y") + f"return %t : {CELL}")
    assert checked.facts["buffers"] == 1


# -- slices


def test_pieces_of_a_concatenation_are_made_in_their_slices() -> None:
    body = "".join(call(f"%v{k}", "scale", "%x" if k == 0 else f"%v{k - 1}") for k in range(5)) + f"%e = tensor.empty() : {STACK}\n"
    last = "%e"
    for k in range(5):
        body += put(f"%s{k}", f"%v{k}", last, f"%c{k}")
        last = f"%s{k}"
    checked = program(body + f"return {last} : {STACK}", STACK)
    assert checked.copies == {} and "memref.alloc" not in checked.body


def test_the_second_write_of_one_slice_wins() -> None:
    """The source of the later insert is made first: forwarding both would leave the earlier insert's value."""
    body = (
        call("%late", "scale", "%x") + call("%early", "scale", "%y") + put("%s1", "%early", "%s", "%c2") + put("%s2", "%late", "%s1", "%c2")
    )
    program(body + f"return %s2 : {STACK}", STACK)


def test_a_reader_between_producer_and_insert() -> None:
    """Miscompile 2, without a loop."""
    base = call("%z", "scale", "%y") + f"%e = tensor.empty() : {STACK}\n"
    last = "%e"
    for k in range(5):
        base += put(f"%b{k}", "%z", last, f"%c{k}")
        last = f"%b{k}"
    body = base + call("%t", "scale", "%x") + get("%old", last, "%c1") + call("%u", "mean", "%t", "%old") + put("%s1", "%t", last, "%c1")
    checked = program(body + f"return %s1, %u : {STACK}, {CELL}", f"({STACK}, {CELL})")
    assert len(checked.copies["f"]) == 5  # one value into five slices (made in the first), and the source that a reader keeps off
    elsewhere = body.replace(get("%old", last, "%c1"), get("%old", last, "%c3"))
    checked = program(elsewhere + f"return %s1, %u : {STACK}, {CELL}", f"({STACK}, {CELL})")
    assert len(checked.copies["f"]) == 4


def test_a_version_that_is_read_later_is_copied_whole_once() -> None:
    body = put("%s1", "%x", "%s", "%c0") + put("%s2", "%y", "%s1", "%c1") + put("%s3", "%y", "%s1", "%c2")
    checked = program(body + f"return %s2, %s3 : {STACK}, {STACK}", f"({STACK}, {STACK})")
    assert checked.copies["f"].count("memref<5x3x3xf32>") == 2


def test_strided_inserts_and_reads() -> None:
    wide = "tensor<5x6xf32>"
    body = f"""%z = arith.constant 0.0 : f32
%e = tensor.empty() : {wide}
%f = linalg.fill ins(%z : f32) outs(%e : {wide}) -> {wide}
{call("%t", "scale", "%x")}%p = tensor.insert_slice %t into %f[1, 1] [3, 3] [1, 2] : {CELL} into {wide}
%q = tensor.extract_slice %p[0, 1] [3, 3] [2, 2] : {wide} to {CELL}
{call("%u", "mean", "%q", "%y")}return %p, %u : {wide}, {CELL}"""
    checked = program(body, f"({wide}, {CELL})")
    assert checked.copies == {}  # padding: filled, then made inside
    assert "strided<[6, 2], offset: 7>" in checked.body or "strided<[6, 2], offset: ?>" in checked.body


def test_a_part_of_a_part_is_made_after_its_host_is_filled() -> None:
    """The source of the inner insert is older than the fill of the outer one, which wiped it out."""
    wide, middle = "tensor<5x6xf32>", "tensor<4x4xf32>"
    body = f"""{call("%t", "scale", "%x")}%z = arith.constant 0.0 : f32
%e = tensor.empty() : {wide}
%f = linalg.fill ins(%z : f32) outs(%e : {wide}) -> {wide}
%h = tensor.empty() : {middle}
%g = linalg.fill ins(%z : f32) outs(%h : {middle}) -> {middle}
%o = tensor.empty() : {CELL}
%i = tensor.insert_slice %t into %o[0, 0] [3, 3] [1, 1] : {CELL} into {CELL}
%m = tensor.insert_slice %i into %f[1, 1] [3, 3] [1, 1] : {CELL} into {wide}
{call("%u", "mean", "%t", "%y")}return %m, %u, %g : {wide}, {CELL}, {middle}"""
    program(body, f"({wide}, {CELL}, {middle})")


def test_strides_make_variants_and_offsets_do_not() -> None:
    wide = "tensor<3x6xf32>"
    body = f"""{get("%a", "%s", "%c1")}{get("%b", "%s", "%c2")}{call("%t", "scale", "%a")}{call("%u", "scale", "%b")}{call("%v", "scale", "%x")}
{call("%m", "mean", "%t", "%u")}{call("%m2", "mean", "%m", "%v")}%e = tensor.empty() : {wide}
%p = tensor.insert_slice %m2 into %e[0, 0] [3, 3] [1, 1] : {CELL} into {wide}
%q = tensor.insert_slice %v into %p[0, 3] [3, 3] [1, 1] : {CELL} into {wide}
return %q : {wide}"""
    checked = program(body, wide)
    assert checked.text.count("func.func private @scale") == 2  # contiguous destination, column slice as destination
    assert "@scale_s1" in checked.text and "@scale_s2" not in checked.text


# -- shapes


def test_reshapes_are_views_and_outputs_are_written_through_them() -> None:
    body = call("%t", "scale", "%x") + f"%r = tensor.collapse_shape %t [[0, 1]] : {CELL} into tensor<9xf32>\n"
    checked = program(body + "return %r : tensor<9xf32>", "tensor<9xf32>")
    assert checked.copies == {} and "memref.alloc" not in checked.body
    body = f"%r = tensor.collapse_shape %s [[0], [1, 2]] : {STACK} into tensor<5x9xf32>\n"
    body += "%q = tensor.extract_slice %r[2, 0] [1, 9] [1, 1] : tensor<5x9xf32> to tensor<9xf32>\n"
    body += f"%c = tensor.expand_shape %q [[0, 1]] output_shape [3, 3] : tensor<9xf32> into {CELL}\n" + call("%t", "scale", "%c")
    assert program(body + f"return %t : {CELL}").copies == {}


def test_a_reshape_of_uneven_memory_is_copied() -> None:
    body = f"%c = tensor.extract_slice %s[0, 0, 0] [5, 3, 1] [1, 1, 1] : {STACK} to tensor<5x3x1xf32>\n"
    body += "%r = tensor.collapse_shape %c [[0, 1, 2]] : tensor<5x3x1xf32> into tensor<15xf32>\n"
    body += f"%d = tensor.extract_slice %s[0, 0, 1] [5, 3, 2] [1, 1, 1] : {STACK} to tensor<5x3x2xf32>\n"
    body += "%q = tensor.collapse_shape %d [[0, 1, 2]] : tensor<5x3x2xf32> into tensor<30xf32>\n"
    checked = program(body + "return %r, %q : tensor<15xf32>, tensor<30xf32>", "(tensor<15xf32>, tensor<30xf32>)")
    assert len(checked.copies["f"]) == 3


def test_rank_zero_and_single_elements() -> None:
    body = """%v = tensor.extract %x[%c1, %c2] : tensor<3x3xf32>
%t = tensor.from_elements %v : tensor<f32>
%one = tensor.from_elements %v : tensor<1x1xf32>
%r = tensor.collapse_shape %one [] : tensor<1x1xf32> into tensor<f32>
%w = tensor.from_elements %v, %v, %v, %v, %v, %v : tensor<2x3xf32>
%sp = tensor.splat %v : tensor<4xf32>
return %t, %r, %w, %sp : tensor<f32>, tensor<f32>, tensor<2x3xf32>, tensor<4xf32>"""
    assert program(body, "(tensor<f32>, tensor<f32>, tensor<2x3xf32>, tensor<4xf32>)").copies == {}


# -- sizes

_B = 'tensor<?x3xf32, ["b", ""]>'
_DYNAMIC = f"""#id = affine_map<(i, j) -> (i, j)>
module {{
  func.func private @scale(%a: {_B}, %d: {_B}) -> {_B} attributes {{gradir.kernel = #kernel.elementwise<>}} {{
    %c0 = arith.constant 0 : index
    %n = tensor.dim %a, %c0 : {_B}
    %half = arith.constant 0.5 : f32
    %t = tensor.empty(%n) : {_B}
    %u = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}} ins(%a : {_B}) outs(%t : {_B}) {{
    ^bb0(%p: f32, %o: f32):
      %0 = arith.mulf %p, %half : f32
      linalg.yield %0 : f32
    }} -> {_B}
    %r = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}} ins(%u : {_B}) outs(%d : {_B}) {{
    ^bb0(%p: f32, %o: f32):
      %0 = arith.addf %p, %half : f32
      linalg.yield %0 : f32
    }} -> {_B}
    return %r : {_B}
  }}
  func.func @f(%x: {_B}, %steps: tensor<i32>) -> ({_B}, tensor<?x3x2xf32, ["b", "", ""]>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = tensor.dim %x, %c0 : {_B}
    %count = tensor.extract %steps[] : tensor<i32>
    %n = arith.index_cast %count : i32 to index
    %e = tensor.empty(%b) : {_B}
    %y = func.call @scale(%x, %e) : ({_B}, {_B}) -> {_B}
    %st = tensor.empty(%n, %b) : tensor<?x?x3xf32, ["t", "b", ""]>
    %h, %all = scf.for %i = %c0 to %n step %c1 iter_args(%a = %y, %s = %st) -> ({_B}, tensor<?x?x3xf32, ["t", "b", ""]>) {{
      %e1 = tensor.empty(%b) : {_B}
      %z = func.call @scale(%a, %e1) : ({_B}, {_B}) -> {_B}
      %s2 = tensor.insert_slice %z into %s[%i, 0, 0] [1, %b, 3] [1, 1, 1] : {_B} into tensor<?x?x3xf32, ["t", "b", ""]>
      scf.yield %z, %s2 : {_B}, tensor<?x?x3xf32, ["t", "b", ""]>
    }}
    %back = scf.for %i = %c0 to %n step %c1 iter_args(%a = %h) -> ({_B}) {{
      %j = arith.subi %n, %i : index
      %k = arith.subi %j, %c1 : index
      %q = tensor.extract_slice %all[%k, 0, 0] [1, %b, 3] [1, 1, 1] : tensor<?x?x3xf32, ["t", "b", ""]> to {_B}
      %e1 = tensor.empty(%b) : {_B}
      %z = func.call @scale(%q, %e1) : ({_B}, {_B}) -> {_B}
      scf.yield %z : {_B}
    }}
    %w = tensor.empty(%b) : tensor<?x3x2xf32, ["b", "", ""]>
    %w1 = tensor.insert_slice %back into %w[0, 0, 0] [%b, 3, 1] [1, 1, 1] : {_B} into tensor<?x3x2xf32, ["b", "", ""]>
    %w2 = tensor.insert_slice %y into %w1[0, 0, 1] [%b, 3, 1] [1, 1, 1] : {_B} into tensor<?x3x2xf32, ["b", "", ""]>
    return %h, %w2 : {_B}, tensor<?x3x2xf32, ["b", "", ""]>
  }}
}}
"""


@pytest.mark.parametrize(("b", "t"), [(4, 3), (0, 3), (1, 1), (5, 0)])
def test_sizes_known_at_entry_and_sizes_known_during_the_run(b: int, t: int) -> None:
    checked = Checked(_DYNAMIC)
    x = np.random.default_rng(1).standard_normal((b, 3)).astype(np.float32)
    checked.agrees([x, np.array(t, np.int32)], upstream=(b, t) in ((4, 3), (5, 0)), shapes=[(b, 3), (b, 3, 2)])
    assert "memref.dim %x" in checked.body
    stack = next(line for line in checked.body.splitlines() if "memref.alloc(" in line and "memref<?x?x3xf32>" in line)
    assert stack.count("%") == 3
    assert checked.facts["run_time"] >= 1


def test_a_size_that_nothing_states_is_an_error() -> None:
    """Each branch computes its size: nothing in front of the branches says it."""
    size = """
      %m = scf.if %d -> (index) {
        %two = arith.constant 2 : index
        scf.yield %two : index
      } else {
        scf.yield %n : index
      }"""
    text = f"""module {{
  func.func @f(%c: i1, %d: i1, %n: index) -> tensor<f32> {{
    %t = scf.if %c -> (tensor<?xf32>) {{{size}
      %a = tensor.empty(%m) : tensor<?xf32>
      %v = arith.constant 1.0 : f32
      %z = linalg.fill ins(%v : f32) outs(%a : tensor<?xf32>) -> tensor<?xf32>
      scf.yield %z : tensor<?xf32>
    }} else {{{size}
      %a = tensor.empty(%m) : tensor<?xf32>
      scf.yield %a : tensor<?xf32>
    }}
    %c0 = arith.constant 0 : index
    %s = tensor.extract %t[%c0] : tensor<?xf32>
    %r = tensor.from_elements %s : tensor<f32>
    return %r : tensor<f32>
  }}
}}"""
    with pytest.raises(GradirError, match="size of dimension 0") as error:
        Bufferize().apply(parse_module(text), PassContext())
    assert error.value.code == "GR062" and error.value.function == "@f"


# -- errors


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (
            "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { %y = nd.exp %x : tensor<2xf32> return %y : tensor<2xf32> }",
            "GR060",
            "no form on buffers",
        ),
        (
            "func.func @f(%x: tensor<2x2xf32>) -> tensor<2x2xf32> { %y = linalg.matmul ins(%x, %x : tensor<2x2xf32>, tensor<2x2xf32>) "
            "outs(%x : tensor<2x2xf32>) -> tensor<2x2xf32> return %y : tensor<2x2xf32> }",
            "GR060",
            "--linalg-generalize-named-ops",
        ),
        (
            "func.func private @g(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }\n"
            "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { %y = func.call @g(%x) : (tensor<2xf32>) -> tensor<2xf32> return %y : tensor<2xf32> }",
            "GR061",
            "calls @g, which is not a kernel",
        ),
        ("func.func @f(%x: tensor<2xf32>) -> f32 { %v = arith.constant 1.0 : f32 return %v : f32 }", "GR060", "returns a scalar"),
        (
            "func.func @f(%x: tensor<2xf32>, %m: memref<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }",
            "GR060",
            "mixes tensors and memrefs",
        ),
    ],
)
def test_errors_name_op_function_and_next_step(body: str, code: str, message: str) -> None:
    with pytest.raises(GradirError, match=message) as error:
        Bufferize().apply(parse_module(body), PassContext())
    assert error.value.code == code and error.value.function == "@f" and error.value.location


def test_functions_on_buffers_are_left_alone() -> None:
    text = "func.func @f(%x: memref<2xf32>) { return }"
    parsed = parse_module(text)
    before = str(parsed)
    Bufferize().apply(parsed, PassContext())
    assert str(parsed) == before


def test_constants_hold_their_elements() -> None:
    body = f"%k = arith.constant dense<0.25> : {CELL}\n" + call("%t", "mean", "%x", "%k") + f"return %t : {CELL}"
    checked = program(body)
    (got,) = run(checked.module, "f", arrays())
    np.testing.assert_allclose(got, (arrays()[0] + np.float32(0.25)) * np.float32(0.5))


def test_every_op_keeps_a_location() -> None:
    constant = f"%k = arith.constant dense<0.25> : {CELL}\n"
    loop = (
        f"%h = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> ({CELL}) {{\n"
        + call("%u", "product", "%a", "%k")
        + f"scf.yield %u : {CELL}\n}}\n"
    )
    for source in (module(HEAD + constant + loop + f"return %h : {CELL}"), _DYNAMIC, TEMPLATE):
        checked = Checked(source)
        for parsed in (checked.module, checked.planned_module):
            lost = [op.name for op in parsed.walk() if op is not parsed and isinstance(op.location, UnknownLoc)]
            assert not lost


_ANONYMOUS = """#i = affine_map<(i) -> (i)>
#x = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i, j) -> (i)>
module {
  func.func private @scale(%a: tensor<?xf32>, %d: tensor<?xf32>) -> tensor<?xf32> attributes {gradir.kernel = #kernel.elementwise<>} {
    %half = arith.constant 0.5 : f32
    %r = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%a : tensor<?xf32>) outs(%d : tensor<?xf32>) {
    ^bb0(%p: f32, %o: f32):
      %0 = arith.mulf %p, %half : f32
      linalg.yield %0 : f32
    } -> tensor<?xf32>
    return %r : tensor<?xf32>
  }
  func.func private @reverse(%a: tensor<?xf32>, %d: tensor<?xf32>) -> tensor<?xf32> attributes {gradir.kernel = #kernel.template<>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = tensor.dim %a, %c0 : tensor<?xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %d) -> (tensor<?xf32>) {
      %m = arith.subi %n, %i : index
      %j = arith.subi %m, %c1 : index
      %v = tensor.extract %a[%j] : tensor<?xf32>
      %w = tensor.insert %v into %t[%i] : tensor<?xf32>
      scf.yield %w : tensor<?xf32>
    }
    return %r : tensor<?xf32>
  }
  func.func @f(%x: tensor<?x3xf32>, %steps: index) -> (tensor<?xf32>, tensor<?x3xf32>, tensor<?xf32>, tensor<?xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %b = tensor.dim %x, %c0 : tensor<?x3xf32>
    %flat = tensor.collapse_shape %x [[0, 1]] : tensor<?x3xf32> into tensor<?xf32>
    %n = tensor.dim %flat, %c0 : tensor<?xf32>
    %e = tensor.empty(%n) : tensor<?xf32>
    %y = func.call @scale(%flat, %e) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %h = scf.for %i = %c0 to %steps step %c1 iter_args(%a = %y) -> (tensor<?xf32>) {
      %m = tensor.dim %a, %c0 : tensor<?xf32>
      %e1 = tensor.empty(%m) : tensor<?xf32>
      %z = func.call @reverse(%a, %e1) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      scf.yield %z : tensor<?xf32>
    }
    %w, %last = scf.while (%a = %h, %i = %c0) : (tensor<?xf32>, index) -> (tensor<?xf32>, index) {
      %go = arith.cmpi slt, %i, %steps : index
      scf.condition(%go) %a, %i : tensor<?xf32>, index
    } do {
    ^bb0(%a: tensor<?xf32>, %i: index):
      %m = tensor.dim %a, %c0 : tensor<?xf32>
      %e1 = tensor.empty(%m) : tensor<?xf32>
      %z = func.call @reverse(%a, %e1) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      %j = arith.addi %i, %c1 : index
      scf.yield %z, %j : tensor<?xf32>, index
    }
    %back = tensor.expand_shape %w [[0, 1]] output_shape [%b, 3] : tensor<?xf32> into tensor<?x3xf32>
    %zero = arith.constant 0.0 : f32
    %re = tensor.empty(%b) : tensor<?xf32>
    %rf = linalg.fill ins(%zero : f32) outs(%re : tensor<?xf32>) -> tensor<?xf32>
    %sums = linalg.generic {indexing_maps = [#x, #r], iterator_types = ["parallel", "reduction"]}
        ins(%back : tensor<?x3xf32>) outs(%rf : tensor<?xf32>) {
    ^bb0(%p: f32, %o: f32):
      %0 = arith.addf %p, %o : f32
      linalg.yield %0 : f32
    } -> tensor<?xf32>
    %column = tensor.extract_slice %back[0, 1] [%b, 1] [1, 1] : tensor<?x3xf32> to tensor<?xf32>
    %cn = tensor.dim %column, %c0 : tensor<?xf32>
    %ce = tensor.empty(%cn) : tensor<?xf32>
    %half = func.call @scale(%column, %ce) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %some = tensor.cast %half : tensor<?xf32> to tensor<?xf32>
    return %w, %back, %sums, %some : tensor<?xf32>, tensor<?x3xf32>, tensor<?xf32>, tensor<?xf32>
  }
}
"""


@pytest.mark.parametrize(("b", "steps"), [(2, 3), (0, 1), (3, 0)])
def test_sizes_without_names(b: int, steps: int) -> None:
    x = np.random.default_rng(2).standard_normal((b, 3)).astype(np.float32)
    checked = Checked(_ANONYMOUS)
    checked.agrees([x, np.int64(steps)], upstream=(b, steps) == (2, 3), shapes=[(3 * b,), (b, 3), (b,), (b,)])


def test_linalg_outside_of_kernels_and_updates_of_what_is_read_later() -> None:
    text = f"""#i = affine_map<(i, j) -> (i, j)>
module {{
  func.func @f(%x: {CELL}, %y: {CELL}) -> ({CELL}, {CELL}, {CELL}) {{
    %e = tensor.empty() : {CELL}
    %c = linalg.copy ins(%x : {CELL}) outs(%e : {CELL}) -> {CELL}
    %s = linalg.generic {{indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel"]}} ins(%y : {CELL}) outs(%c : {CELL}) {{
    ^bb0(%p: f32, %o: f32):
      %0 = arith.addf %p, %o : f32
      linalg.yield %0 : f32
    }} -> {CELL}
    %t = linalg.generic {{indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel"]}} ins(%y : {CELL}) outs(%c : {CELL}) {{
    ^bb0(%p: f32, %o: f32):
      %0 = arith.mulf %p, %o : f32
      linalg.yield %0 : f32
    }} -> {CELL}
    return %s, %t, %c : {CELL}, {CELL}, {CELL}
  }}
}}"""
    checked = Checked(text).agrees(arrays()[:2])
    assert len(checked.copies["f"]) == 2  # two updates of a tensor that is returned too


def test_a_library_kernel_is_declared_on_buffers() -> None:
    text = """module {
  func.func private @sgemv(tensor<3x3xf32>, tensor<3xf32>, f32, tensor<3xf32>) -> tensor<3xf32> attributes {gradir.kernel = #kernel.template<>}
  func.func @f(%a: tensor<3x3xf32>, %x: tensor<5x3xf32>) -> tensor<3xf32> {
    %one = arith.constant 1.0 : f32
    %row = tensor.extract_slice %x[2, 0] [1, 3] [1, 1] : tensor<5x3xf32> to tensor<3xf32>
    %e = tensor.empty() : tensor<3xf32>
    %y = func.call @sgemv(%a, %row, %one, %e) : (tensor<3x3xf32>, tensor<3xf32>, f32, tensor<3xf32>) -> tensor<3xf32>
    return %y : tensor<3xf32>
  }
}"""
    parsed = parse_module(text)
    Bufferize().apply(parsed, PassContext())
    declared = parsed.body.block.first_op
    assert isinstance(declared, FuncOp) and declared.arg_attrs is not None
    assert str(declared).startswith("func.func private @sgemv(memref<3x3xf32>, memref<3xf32, strided<[1], offset: ?>>, f32, memref<3xf32>)")
    assert [str(row.data.get("gradir.access")) for row in declared.arg_attrs] == ['"read"', '"read"', "None", '"write"']


def test_a_kernel_that_nobody_calls_is_kept() -> None:
    parsed = parse_module("module {\n" + KERNELS["scale"][2] + "}")
    Bufferize().apply(parsed, PassContext())
    assert "func.func private @scale(%a: memref<3x3xf32>" in str(parsed)
